//! Parameters of congestion control: how they are changed, and told. Source: `roce_hsi.h`, and `qplib_tlv.h` for the list of
//! parts that the command is.

use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned, little_endian as le};

use super::cmdq::PARTS;
use super::congestion::{
    CmdqModifyRoceCc, CmdqModifyRoceCcGen1Tlv, CreqQueryRoceCcGen1RespSbTlv, CreqQueryRoceCcRespSb,
};
use super::message::{Command, CreqDone, UNIT};
use super::opcode::Opcode;

/// Flags of a part: another one follows, and it must be understood.
const MORE: u8 = 1;
const REQUIRED: u8 = 2;
/// Kinds of part: a command, and the parameters of the first generation of P5's congestion control.
const COMMAND: u16 = 3;
const GEN1: u16 = 5;
/// Bytes of a part's header.
const HEADER: usize = UNIT;
/// Where the two parts begin in [`ModifyCongestion`], and the second one in [`Congestion`].
const BASE_AT: u8 = 16;
const GEN1_AT: u8 = 80;
const GEN1_TOLD: u8 = 32;

/// Changes parameters: the command of P5 and later, in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct ModifyCongestion {
    /// Header of the list and of its first part.
    pub list: [u8; HEADER],
    /// First part.
    pub base: CmdqModifyRoceCc,
    /// Zero.
    pub pad: [u8; 8],
    /// Second part.
    pub gen1: CmdqModifyRoceCcGen1Tlv,
}

impl Command for ModifyCongestion {
    const OPCODE: Opcode = Opcode::MODIFY_ROCE_CC;
    type Completion = CreqDone;
}

/// The parameters as they are: what [`CmdqQueryRoceCc`](super::congestion::CmdqQueryRoceCc) is answered with if there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct Congestion {
    /// First part.
    pub base: CreqQueryRoceCcRespSb,
    /// Second part.
    pub gen1: CreqQueryRoceCcGen1RespSbTlv,
}

/// A value that a parameter cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("congestion parameter {parameter}: {value} is more than {max}")]
pub struct ParameterError {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// The value.
    pub value: u32,
    /// Its largest value.
    pub max: u32,
}

/// A parameter: where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    name: &'static str,
    /// Byte of its bit in the mask of its part, and the bit.
    mask_at: u8,
    bit: u8,
    /// First byte, in the command and where it is told.
    at: u8,
    told: u8,
    /// First bit of that byte.
    shift: u8,
    max: u32,
}

const fn base(bit: u8, at: u8, told: u8, max: u32) -> Parameter {
    Parameter {
        name: "",
        mask_at: BASE_AT + 16 + bit / 8,
        bit: bit % 8,
        at: BASE_AT + at,
        told,
        shift: 0,
        max,
    }
}

const fn gen1(bit: u8, at: u8, max: u32) -> Parameter {
    let (mask_at, told) = (GEN1_AT + 16 + bit / 8, GEN1_TOLD + at - 8);
    Parameter { name: "", mask_at, bit: bit % 8, at: GEN1_AT + at, told, shift: 0, max }
}

const BYTE: u32 = 0xff;
const HALF: u32 = 0xffff;

/// Declares the parameters, by the bit of the mask, the offset and the largest value.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])* $name:ident = $place:expr;)*) => {
        impl Parameter {
            $($(#[doc = $doc])* pub const $name: Self = Self { name: stringify!($name), ..$place };)*

            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

parameters! {
    /// Congestion control is on.
    ENABLE_CC = base(0, 20, 8, 1);
    /// Weight of new marks.
    G = base(1, 21, 10, BYTE);
    /// Phases of a state.
    NUM_PHASES_PER_STATE = base(2, 22, 11, BYTE);
    /// First current rate.
    INIT_CR = base(3, 24, 12, HALF);
    /// First target rate.
    INIT_TR = base(4, 26, 14, HALF);
    /// ECN bits of packets.
    TOS_ECN = base(5, 28, 9, 3);
    /// Code point of packets.
    TOS_DSCP = Parameter { shift: 2, ..base(6, 28, 9, 63) };
    /// VLAN priority of CNPs.
    ALT_VLAN_PCP = base(7, 29, 16, 7);
    /// Code point of CNPs.
    ALT_TOS_DSCP = base(8, 30, 17, 63);
    /// Round-trip time.
    RTT = base(9, 32, 20, 0x3fff);
    /// 0 as DCTCP, 1 probabilistic.
    CC_MODE = base(10, 36, 18, 1);
    /// Congestion probability of TCP.
    TCP_CP = base(11, 34, 22, 0x3ff);
    /// Transmit queue.
    TX_QUEUE = base(12, 37, 19, BYTE);
    /// Idle time after which a flow starts anew.
    INACTIVITY_TH = base(13, 38, 24, HALF);
    /// Time of a phase.
    TIME_PER_PHASE = base(14, 40, 27, BYTE);
    /// Packets of a phase.
    PKTS_PER_PHASE = base(15, 23, 26, BYTE);
    /// Least time between CNPs.
    MIN_TIME_BETWEEN_CNPS = gen1(0, 26, HALF);
    /// First congestion probability.
    INIT_CP = gen1(1, 28, HALF);
    /// How the target rate is updated.
    TR_UPDATE_MODE = gen1(2, 30, BYTE);
    /// Cycles between updates of the target rate.
    TR_UPDATE_CYCLES = gen1(3, 31, BYTE);
    /// Round trips of fast recovery.
    FR_NUM_RTTS = gen1(4, 32, BYTE);
    /// Step of the active increase.
    AI_RATE_INCREASE = gen1(5, 33, BYTE);
    /// Round trips after which reductions are relaxed.
    REDUCTION_RELAX_RTTS_TH = gen1(6, 34, HALF);
    /// Current rate below which they are relaxed further.
    ADDITIONAL_RELAX_CR_TH = gen1(7, 36, HALF);
    /// Least current rate.
    CR_MIN_TH = gen1(8, 38, HALF);
    /// Weight of the average bandwidth.
    BW_AVG_WEIGHT = gen1(9, 40, BYTE);
    /// Factor of the actual current rate.
    ACTUAL_CR_FACTOR = gen1(10, 41, BYTE);
    /// Current rate of the largest congestion probability.
    MAX_CP_CR_TH = gen1(11, 42, HALF);
    /// The congestion probability has a bias.
    CP_BIAS_EN = gen1(12, 44, BYTE);
    /// The bias.
    CP_BIAS = gen1(13, 45, BYTE);
    /// ECN bits of CNPs: 0, 1 or 2.
    CNP_ECN = gen1(14, 46, 2);
    /// Round-trip times jitter.
    RTT_JITTER_EN = gen1(15, 47, BYTE);
    /// Bytes of the link in a microsecond.
    LINK_BYTES_PER_USEC = gen1(16, 48, HALF);
    /// Current rate above which a flow starts anew.
    RESET_CC_CR_TH = gen1(17, 50, HALF);
    /// Bits of the current rate.
    CR_WIDTH = gen1(18, 52, BYTE);
    /// Least quota period.
    QUOTA_PERIOD_MIN = gen1(19, 53, BYTE);
    /// Largest quota period.
    QUOTA_PERIOD_MAX = gen1(20, 54, BYTE);
    /// Largest quota period of all.
    QUOTA_PERIOD_ABS_MAX = gen1(21, 55, BYTE);
    /// Least target rate.
    TR_LOWER_BOUND = gen1(22, 56, HALF);
    /// Factor of the probability of the current rate.
    CR_PROB_FACTOR = gen1(23, 58, BYTE);
    /// Factor of the probability of the target rate.
    TR_PROB_FACTOR = gen1(24, 59, BYTE);
    /// Current rate above which fairness counts.
    FAIRNESS_CR_TH = gen1(25, 60, HALF);
    /// Divisor of reductions.
    RED_DIV = gen1(26, 62, BYTE);
    /// Share of CNPs.
    CNP_RATIO_TH = gen1(27, 63, BYTE);
    /// Round trips of the exponential increase.
    EXP_AI_RTTS = gen1(28, 64, HALF);
    /// Ratio of current rate and congestion probability in the exponential increase.
    EXP_AI_CR_CP_RATIO = gen1(29, 66, BYTE);
    /// Congestion probability of the exponential update.
    CP_EXP_UPDATE_TH = gen1(30, 68, HALF);
    /// Round trips of the high exponential increase, first step.
    HIGH_EXP_AI_RTTS_TH1 = gen1(31, 70, HALF);
    /// Second step.
    HIGH_EXP_AI_RTTS_TH2 = gen1(32, 72, HALF);
    /// Low rates come from a table.
    USE_RATE_TABLE = gen1(33, 67, BYTE);
    /// 64-byte units of the link in a round trip.
    LINK64B_PER_RTT = gen1(34, 80, u32::MAX);
    /// Round trips without congestion of the actual current rate.
    ACTUAL_CR_CONG_FREE_RTTS_TH = gen1(35, 74, HALF);
    /// Current rate of severe congestion, first step.
    SEVERE_CONG_CR_TH1 = gen1(36, 76, HALF);
    /// Second step.
    SEVERE_CONG_CR_TH2 = gen1(37, 78, HALF);
    /// Bytes of an acknowledgement.
    CC_ACK_BYTES = gen1(38, 84, BYTE);
    /// The first rate is reduced.
    REDUCE_INIT_EN = gen1(39, 85, BYTE);
    /// Round trips without congestion before that.
    REDUCE_INIT_CONG_FREE_RTTS_TH = gen1(40, 86, HALF);
    /// Reductions are left out at random.
    RANDOM_NO_RED_EN = gen1(41, 88, BYTE);
    /// The shift of the actual current rate is corrected.
    ACTUAL_CR_SHIFT_CORRECTION_EN = gen1(42, 89, BYTE);
    /// The quota period is adjusted.
    QUOTA_PERIOD_ADJUST_EN = gen1(43, 90, BYTE);
}

impl Parameter {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its largest value.
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// The bytes that it is in, from `at` on.
    fn bytes<'b>(&self, at: u8, all: &'b mut [u8]) -> &'b mut [u8] {
        let len = (self.max << self.shift | self.max).ilog2() as usize / 8 + 1;
        all.get_mut(at.into()..).and_then(|rest| rest.get_mut(..len)).unwrap_or_default()
    }

    fn load(&self, at: u8, all: &mut [u8]) -> u32 {
        let bytes = self.bytes(at, all);
        let whole = bytes.iter().rev().fold(0u32, |whole, byte| whole << 8 | u32::from(*byte));
        let bits = u32::MAX >> self.max.leading_zeros();
        whole >> self.shift & bits
    }

    fn store(&self, at: u8, all: &mut [u8], value: u32) {
        let bits = (u32::MAX >> self.max.leading_zeros()) << self.shift;
        let bytes = self.bytes(at, all);
        let parts = (value << self.shift).to_le_bytes().into_iter().zip(bits.to_le_bytes());
        for (byte, (part, bits)) in bytes.iter_mut().zip(parts) {
            *byte = *byte & !bits | part;
        }
    }
}

impl ModifyCongestion {
    /// Changes nothing.
    pub const NONE: Self = {
        let ([parts, more_parts], [low, high]) = (PARTS.to_le_bytes(), COMMAND.to_le_bytes());
        let content = size_of::<CmdqModifyRoceCc>() as u8;
        let units = size_of::<Self>().div_ceil(UNIT) as u8;
        let flags = MORE | REQUIRED;
        let list = [parts, more_parts, 0, flags, low, high, content, 0, units, 0, 0, 0, 0, 0, 0, 0];
        let base = CmdqModifyRoceCc { cmd_size: content.div_ceil(UNIT as u8), ..CmdqModifyRoceCc::ZERO };
        let gen1 = CmdqModifyRoceCcGen1Tlv {
            cmd_discr: le::U16::new(PARTS),
            tlv_flags: REQUIRED,
            tlv_type: le::U16::new(GEN1),
            length: le::U16::new((size_of::<CmdqModifyRoceCcGen1Tlv>() - HEADER) as u16),
            ..CmdqModifyRoceCcGen1Tlv::ZERO
        };
        Self { list, base, pad: [0; 8], gen1 }
    };

    /// The same, and `parameter` becomes `value`.
    ///
    /// # Errors
    /// It cannot.
    pub fn set(mut self, parameter: Parameter, value: u32) -> Result<Self, ParameterError> {
        if value > parameter.max {
            return Err(ParameterError { parameter: parameter.name, value, max: parameter.max });
        }
        let all = self.as_mut_bytes();
        parameter.store(parameter.at, all, value);
        if let Some(mask) = all.get_mut(usize::from(parameter.mask_at)) {
            *mask |= 1 << parameter.bit;
        }
        Ok(self)
    }

    /// What `parameter` becomes, if it changes.
    pub fn get(mut self, parameter: Parameter) -> Option<u32> {
        let all = self.as_mut_bytes();
        let changes = all.get(usize::from(parameter.mask_at))? & 1 << parameter.bit != 0;
        changes.then(|| parameter.load(parameter.at, all))
    }

    /// Whether it is made as [`Self::NONE`] is, and changes no more than there is.
    pub fn is_well_formed(&self) -> bool {
        let known = |gen1: bool| {
            let of = |p: &&Parameter| (p.mask_at >= GEN1_AT) == gen1;
            Parameter::ALL.iter().filter(of).count()
        };
        let headers = self.list == Self::NONE.list
            && self.gen1.as_bytes().first_chunk::<8>() == Self::NONE.gen1.as_bytes().first_chunk();
        let base = u64::from(self.base.modify_mask.get()) >> known(false) == 0;
        headers && base && self.gen1.modify_mask.get() >> known(true) == 0
    }
}

impl Default for Congestion {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Congestion {
    /// All zero: no congestion control.
    pub const ZERO: Self =
        Self { base: CreqQueryRoceCcRespSb::ZERO, gen1: CreqQueryRoceCcGen1RespSbTlv::ZERO };

    /// What `parameter` is.
    pub fn get(mut self, parameter: Parameter) -> u32 {
        parameter.load(parameter.told, self.as_mut_bytes())
    }

    /// Makes `parameter` that: what a device does.
    pub fn put(&mut self, parameter: Parameter, value: u32) {
        parameter.store(parameter.told, self.as_mut_bytes(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_changed_and_told_in_its_place() {
        for parameter in Parameter::ALL {
            let (mut told, max) = (Congestion::ZERO, parameter.max());
            let change = ModifyCongestion::NONE.set(*parameter, max).unwrap();
            assert!(change.is_well_formed(), "{}", parameter.name());
            assert_eq!(change.get(*parameter), Some(max), "{}", parameter.name());
            told.put(*parameter, max);
            assert_eq!(told.get(*parameter), max, "{}", parameter.name());
            for other in Parameter::ALL.iter().filter(|other| *other != parameter) {
                assert_eq!((change.get(*other), told.get(*other)), (None, 0), "{}", other.name());
            }
            if let Some(more) = max.checked_add(1) {
                let error = ParameterError { parameter: parameter.name(), value: more, max };
                assert_eq!(ModifyCongestion::NONE.set(*parameter, more), Err(error));
            }
        }
    }

    #[test]
    fn the_command_is_a_list_of_two_parts() {
        let change = ModifyCongestion::NONE
            .set(Parameter::TOS_DSCP, 26)
            .and_then(|change| change.set(Parameter::TOS_ECN, 1))
            .and_then(|change| change.set(Parameter::LINK64B_PER_RTT, 0x0102_0304))
            .unwrap();
        let bytes = change.as_bytes();
        assert_eq!(bytes[..16], [0, 0x80, 0, 3, 3, 0, 56, 0, 11, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((change.base.modify_mask.get(), change.base.tos_dscp_tos_ecn), (0x60, 26 << 2 | 1));
        assert_eq!(bytes[80..88], [0, 0x80, 0, 2, 5, 0, 80, 0]);
        assert_eq!(change.gen1.modify_mask.get(), 1 << 34);
        assert_eq!(change.gen1.link64b_per_rtt.get(), 0x0102_0304);
        assert_eq!(bytes.len(), 11 * 16);
    }
}
