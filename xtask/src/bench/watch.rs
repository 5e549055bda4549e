//! The figures of `hairspring watch`.

mod arming;
mod churn;
mod gdb;
mod hits;
mod memory;
mod slowdown;

use super::Figure;

pub(crate) const FIGURES: &[Figure] =
    &[hits::FIGURE, gdb::FIGURE, churn::FIGURE, arming::FIGURE, memory::FIGURE, slowdown::FIGURE];
