//! The bytes of a watched place at one moment.

use std::fmt;

/// A value of 1 to 32 bytes, little-endian as in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    bytes: [u8; Self::MOST_BYTES],
    len: u8,
}

impl Value {
    /// The most bytes that a value can have: what four debug registers watch.
    pub const MOST_BYTES: usize = 32;

    /// The bytes as a value; `None` where there are none or too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = u8::try_from(bytes.len()).ok().filter(|len| *len > 0)?;
        let mut value = Self { bytes: [0; Self::MOST_BYTES], len };
        value.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(value)
    }

    /// The bytes, lowest address first.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// As an unsigned integer; `None` for more than eight bytes.
    pub fn integer(&self) -> Option<u64> {
        let integer = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        (self.len <= 8).then(|| integer(self.bytes()))
    }

    /// The value with some of its bytes replaced; `None` where they reach beyond it.
    pub fn with(mut self, offset: usize, bytes: &[u8]) -> Option<Self> {
        let end = offset.checked_add(bytes.len()).filter(|end| *end <= usize::from(self.len))?;
        self.bytes.get_mut(offset..end)?.copy_from_slice(bytes);
        Some(self)
    }
}

impl fmt::Display for Value {
    /// An integer of up to eight bytes in decimal up to 65535 and else in hexadecimal; longer ones
    /// as the hexadecimal integer of all bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.integer() {
            Some(small) if u16::try_from(small).is_ok() => write!(f, "{small}"),
            Some(integer) => write!(f, "{integer:#x}"),
            None => fmt::LowerHex::fmt(self, f),
        }
    }
}

impl fmt::LowerHex for Value {
    /// All bytes, as one integer of the value's width.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.bytes().iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({self:#x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_little_endian() {
        for (bytes, text, hex) in [
            (&[7][..], "7", "0x07"),
            (&[0xff, 0xff], "65535", "0xffff"),
            (&[0, 0, 1, 0], "0x10000", "0x00010000"),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9], "0x090807060504030201", "0x090807060504030201"),
        ] {
            let value = Value::new(bytes).expect("a value");
            assert_eq!(value.to_string(), text);
            assert_eq!(format!("{value:x}"), hex);
        }
        assert_eq!(Value::new(&[0, 1]).and_then(|v| v.integer()), Some(256));
    }

    #[test]
    fn no_value_is_empty_or_too_long() {
        assert_eq!(Value::new(&[]), None);
        assert_eq!(Value::new(&[0; 33]), None);
        assert!(Value::new(&[0; 32]).is_some());
        assert_eq!(Value::new(&[0; 300]), None);
    }

    #[test]
    fn bytes_are_replaced_inside_only() {
        let value = Value::new(&[1, 2, 3, 4]).expect("a value");
        assert_eq!(value.with(1, &[9, 8]), Value::new(&[1, 9, 8, 4]));
        assert_eq!(value.with(3, &[9, 8]), None);
        assert_eq!(value.with(usize::MAX, &[9]), None);
    }
}
