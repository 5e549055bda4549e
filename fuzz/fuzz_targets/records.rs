//! The records of a ring of any bytes, under a layout that the first bytes choose: each byte is
//! accounted for, and nothing panics.
#![no_main]

use hairspring_perf::{Layout, Record, Records, RegisterSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(([flags, stack], bytes)) = bytes.split_first_chunk() else { return };
    let on = |bit: u8| flags >> bit & 1 == 1;
    let set = |on| if on { RegisterSet::GENERAL } else { RegisterSet::NONE };
    let layout = Layout {
        identifier: on(0),
        ip: on(1),
        tid: on(2),
        time: on(3),
        addr: on(4),
        cpu: on(5),
        kernel_chain: on(6),
        user_registers: set(on(7)),
        user_stack: u16::from(stack & 0xf8),
        interrupt_registers: set(stack & 1 == 1),
    };
    let mut records = 0;
    for record in Records::new(bytes, layout) {
        records += 1;
        if let Ok(Record::Sample(sample)) = record {
            assert!(sample.chain.iter().count() * 8 <= bytes.len());
            assert!(sample.user_stack.len() <= bytes.len());
        }
    }
    assert!(records <= bytes.len() / 8 + 1);
});
