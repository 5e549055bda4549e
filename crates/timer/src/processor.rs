//! Which event of which processor counts retired conditional branches, taken or not.
//!
//! The facts were gathered from the vendors' event lists (Intel's BR_INST_RETIRED.COND and
//! .CONDITIONAL; AMD's PMCx0D1) and from public record/replay tools, as of November 2026. None of
//! them has been checked on hardware by us yet: a probe that counts known branches decides. Configurations are written as raw perf events: umask, event, and the user,
//! interrupt and enable bits, which the kernel sets by itself.
//!
//! Traps. From Ice Lake on the umask is 0x11: with 0x01 the event counts taken branches only, and
//! says nothing. Lion Cove needs bit 40, which kernels that don't know it drop. A hybrid part has one
//! unit for each kind of core, with numbers of their own. AMD's interrupts have no bound.

use hairspring_model::Ticks;

/// A vendor that the table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// GenuineIntel.
    Intel,
    /// AuthenticAMD.
    Amd,
}

/// Who a processor says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// `None`: a vendor that the table doesn't know.
    pub vendor: Option<Vendor>,
    /// Family, the extended one added.
    pub family: u32,
    /// Model, the extended one in front.
    pub model: u32,
}

/// The kind of a core in a hybrid part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// The only kind, or the fast one.
    Performance,
    /// The small one.
    Efficient,
}

/// The event that ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickEvent {
    /// The raw configuration.
    pub config: u64,
    /// How many ticks early it has to be armed.
    pub margin: Ticks,
}

struct Row {
    models: &'static [u32],
    name: &'static str,
    event: TickEvent,
}

const fn event(config: u64, margin: u64) -> TickEvent {
    TickEvent { config, margin: Ticks(margin) }
}

/// Taken and not taken by umask 1, up to Comet Lake.
const OLD: TickEvent = event(0x51_01c4, 100);
/// Umask 0x11, from Ice Lake.
const ICE_LAKE: TickEvent = event(0x51_11c4, 100);
/// The same with the larger skid of Golden Cove and its heirs.
const GOLDEN_COVE: TickEvent = event(0x51_11c4, 125);
/// With umask2, bit 40.
const LION_COVE: TickEvent = event(0x100_0051_11c4, 125);
/// Silvermont's event, and that of every small core since.
const ATOM: TickEvent = event(0x51_7ec4, 100);
/// Family 0x17 and newer.
const ZEN: TickEvent = event(0x51_00d1, 10_000);

/// Intel, family 6.
const INTEL: &[Row] = &[
    Row { models: &[0x1a, 0x1e, 0x2e], name: "Nehalem", event: OLD },
    Row { models: &[0x25, 0x2c, 0x2f], name: "Westmere", event: OLD },
    Row { models: &[0x2a, 0x2d], name: "Sandy Bridge", event: OLD },
    Row { models: &[0x3a, 0x3e], name: "Ivy Bridge", event: OLD },
    Row { models: &[0x3c, 0x3f, 0x45, 0x46], name: "Haswell", event: OLD },
    Row { models: &[0x3d, 0x47, 0x4f, 0x56], name: "Broadwell", event: OLD },
    Row { models: &[0x4e, 0x55, 0x5e], name: "Skylake", event: OLD },
    Row { models: &[0x8e, 0x9e], name: "Kaby Lake", event: OLD },
    Row { models: &[0xa5, 0xa6], name: "Comet Lake", event: OLD },
    Row { models: &[0x7e, 0x6a, 0x6c], name: "Ice Lake", event: ICE_LAKE },
    Row { models: &[0x8c, 0x8d], name: "Tiger Lake", event: ICE_LAKE },
    Row { models: &[0xa7], name: "Rocket Lake", event: ICE_LAKE },
    Row { models: &[0x97, 0x9a], name: "Alder Lake", event: GOLDEN_COVE },
    Row { models: &[0xb7, 0xba, 0xbf], name: "Raptor Lake", event: GOLDEN_COVE },
    Row { models: &[0x8f], name: "Sapphire Rapids", event: GOLDEN_COVE },
    Row { models: &[0xcf], name: "Emerald Rapids", event: GOLDEN_COVE },
    Row { models: &[0xad, 0xae], name: "Granite Rapids", event: GOLDEN_COVE },
    Row { models: &[0xaa], name: "Meteor Lake", event: GOLDEN_COVE },
    Row { models: &[0xbd], name: "Lunar Lake", event: LION_COVE },
    Row { models: &[0xb5, 0xc5, 0xc6], name: "Arrow Lake", event: LION_COVE },
    Row { models: &[0x37, 0x4c, 0x57], name: "Silvermont", event: ATOM },
    Row { models: &[0x5c, 0x5f, 0x7a], name: "Goldmont", event: ATOM },
    Row { models: &[0x9c], name: "Tremont", event: ATOM },
    Row { models: &[0xbe, 0xaf], name: "Gracemont", event: ATOM },
];

impl Processor {
    /// From the registers of `cpuid`: EBX, EDX, ECX of leaf 0, and EAX of leaf 1 (Intel SDM vol. 2,
    /// CPUID; AMD APM vol. 3, E.3).
    pub fn from_cpuid(vendor: [u32; 3], signature: u32) -> Self {
        let name: Vec<u8> = vendor.iter().flat_map(|word| word.to_le_bytes()).collect();
        let vendor = Vendor::named(&name);
        let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
        let family = if base == 0xf { base + extended } else { base };
        let high = signature >> 16 & 0xf;
        // Intel extends the model of family 6 too.
        let extends = base == 0xf || (base == 6 && vendor == Some(Vendor::Intel));
        let model = signature >> 4 & 0xf | if extends { high << 4 } else { 0 };
        Self { vendor, family, model }
    }

    /// From the text of `/proc/cpuinfo` (proc(5)): that of its first processor.
    pub fn from_cpuinfo(text: &str) -> Option<Self> {
        let field = |key: &str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == key).then(|| value.trim())
            })
        };
        Some(Self {
            vendor: Vendor::named(field("vendor_id")?.as_bytes()),
            family: field("cpu family")?.parse().ok()?,
            model: field("model")?.parse().ok()?,
        })
    }

    /// The event of its cores of a kind and the name of its generation; `None` where the table has
    /// no row: then nobody has checked what such an event counts there.
    pub fn tick_event(self, core: Core) -> Option<(TickEvent, &'static str)> {
        match (self.vendor?, self.family) {
            (Vendor::Intel, 6) => {
                let row = INTEL.iter().find(|row| row.models.contains(&self.model))?;
                let event = if core == Core::Efficient { ATOM } else { row.event };
                Some((event, row.name))
            }
            (Vendor::Amd, 0x17..) => Some((ZEN, "Zen")),
            _ => None,
        }
    }
}

impl Vendor {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"GenuineIntel" => Some(Self::Intel),
            b"AuthenticAMD" => Some(Self::Amd),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENUINE_INTEL: [u32; 3] = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
    const AUTHENTIC_AMD: [u32; 3] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
    const HYGON_GENUINE: [u32; 3] = [0x6f67_7948, 0x6e65_476e, 0x656e_6975];

    #[test]
    fn signatures_of_every_generation() {
        for (vendor, signature, expected) in [
            (GENUINE_INTEL, 0x0001_06a5, Some(("Nehalem", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0002_0652, Some(("Westmere", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0002_06a7, Some(("Sandy Bridge", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0003_06a9, Some(("Ivy Bridge", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0003_06c3, Some(("Haswell", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0004_06f1, Some(("Broadwell", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0005_0654, Some(("Skylake", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0009_06ea, Some(("Kaby Lake", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x000a_0655, Some(("Comet Lake", 0x51_01c4, 100))),
            (GENUINE_INTEL, 0x0006_06a6, Some(("Ice Lake", 0x51_11c4, 100))),
            (GENUINE_INTEL, 0x0008_06c1, Some(("Tiger Lake", 0x51_11c4, 100))),
            (GENUINE_INTEL, 0x000a_0671, Some(("Rocket Lake", 0x51_11c4, 100))),
            (GENUINE_INTEL, 0x0009_0672, Some(("Alder Lake", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x000b_0671, Some(("Raptor Lake", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x0008_06f8, Some(("Sapphire Rapids", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x000c_06f2, Some(("Emerald Rapids", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x000a_06d1, Some(("Granite Rapids", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x000a_06a4, Some(("Meteor Lake", 0x51_11c4, 125))),
            (GENUINE_INTEL, 0x000b_06d1, Some(("Lunar Lake", 0x100_0051_11c4, 125))),
            (GENUINE_INTEL, 0x000c_0662, Some(("Arrow Lake", 0x100_0051_11c4, 125))),
            (GENUINE_INTEL, 0x0003_0678, Some(("Silvermont", 0x51_7ec4, 100))),
            (GENUINE_INTEL, 0x0005_06c9, Some(("Goldmont", 0x51_7ec4, 100))),
            (GENUINE_INTEL, 0x0009_06c0, Some(("Tremont", 0x51_7ec4, 100))),
            (GENUINE_INTEL, 0x000a_06f3, Some(("Gracemont", 0x51_7ec4, 100))),
            (AUTHENTIC_AMD, 0x0080_0f11, Some(("Zen", 0x51_00d1, 10_000))), // Zen
            (AUTHENTIC_AMD, 0x0087_0f10, Some(("Zen", 0x51_00d1, 10_000))), // Zen 2
            (AUTHENTIC_AMD, 0x00a0_0f11, Some(("Zen", 0x51_00d1, 10_000))), // Zen 3
            (AUTHENTIC_AMD, 0x00a6_0f12, Some(("Zen", 0x51_00d1, 10_000))), // Zen 4
            (AUTHENTIC_AMD, 0x00b4_0f40, Some(("Zen", 0x51_00d1, 10_000))), // Zen 5
            (AUTHENTIC_AMD, 0x0060_0f12, None),                             // Bulldozer
            (GENUINE_INTEL, 0x0000_0f29, None),                             // Pentium 4
            (GENUINE_INTEL, 0x000f_06f0, None),                             // not made yet
            (HYGON_GENUINE, 0x0090_0f02, None),
            ([0; 3], 0, None),
        ] {
            let processor = Processor::from_cpuid(vendor, signature);
            let found = processor.tick_event(Core::Performance);
            let found = found.map(|(event, name)| (name, event.config, event.margin.0));
            assert_eq!(found, expected, "{signature:#x}: {processor:?}");
        }
    }

    #[test]
    fn small_cores_of_hybrid_parts_have_their_own_event() {
        for signature in [0x0009_0672, 0x000b_0671, 0x000a_06a4, 0x000b_06d1, 0x000c_0662] {
            let processor = Processor::from_cpuid(GENUINE_INTEL, signature);
            let (event, _) = processor.tick_event(Core::Efficient).expect("a hybrid part");
            assert_eq!(event, ATOM);
        }
    }

    #[test]
    fn no_model_is_in_two_rows() {
        let models: Vec<u32> = INTEL.iter().flat_map(|row| row.models).copied().collect();
        let mut once = models.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), models.len());
    }

    #[test]
    fn the_kernels_text_says_the_same() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n";
        let processor = Processor::from_cpuinfo(text);
        assert_eq!(processor, Some(Processor::from_cpuid(AUTHENTIC_AMD, 0x00a0_0f11)));
        assert_eq!(Processor::from_cpuinfo("vendor_id\t: ARM\n"), None);
    }
}
