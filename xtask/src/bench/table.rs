//! Rows of figures, as a table that can be pasted into a document, and their medians.

/// A table with a heading; the first column is text, the others are numbers.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it as Markdown with aligned columns.
    pub(crate) fn print(&self) {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("| {} |", cells.join(" | "));
            if index == 0 {
                let rule = |(column, width): (usize, &usize)| match column {
                    0 => "-".repeat(*width),
                    _ => "-".repeat(width - 1) + ":",
                };
                let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
                println!("| {} |", rules.join(" | "));
            }
        }
    }
}

/// The middle of some figures: of an even number, the mean of the two in the middle. NaN of none.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len().wrapping_sub(1) / 2), sorted.get(sorted.len() / 2)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

/// The smallest and the largest.
pub(crate) fn range(figures: &[f64]) -> (f64, f64) {
    figures
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// A count as a figure; counts here are far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        for (figures, middle) in
            [(&[3.0, 1.0, 2.0][..], 2.0), (&[4.0, 1.0, 3.0, 2.0], 2.5), (&[7.0], 7.0)]
        {
            assert!((median(figures) - middle).abs() < 1e-9, "{figures:?}");
        }
        assert!(median(&[]).is_nan());
    }
}
