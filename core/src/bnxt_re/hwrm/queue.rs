//! Queues of the port. Source: `hsi.h`.

use zerocopy::little_endian as le;

use super::message::{request, response};

request! {
    /// Asks for the queues of the port.
    pub struct QueueQportcfgInput: "hwrm_queue_qportcfg_input", 24, QUEUE_QPORTCFG => QueueQportcfgOutput {
        /// 0 transmit, 1 receive.
        flags: le::U32 = 16,
        /// Port.
        port_id: le::U16 = 20,
        /// 1: the driver maps queues.
        drv_qmap_cap: u8 = 22,
        /// Zero.
        unused_0: u8 = 23,
    }
}
response! {
    /// Queues of the port.
    pub struct QueueQportcfgOutput: "hwrm_queue_qportcfg_output", 168 {
        /// Queues of a port; 0 is an error.
        max_configurable_queues: u8 = 8,
        /// Lossless queues of a port.
        max_configurable_lossless_queues: u8 = 9,
        /// Queues may be configured.
        queue_cfg_allowed: u8 = 10,
        /// 1: transmit and receive differ; 2: profile types are valid.
        queue_cfg_info: u8 = 11,
        /// Flow control may be configured.
        queue_pfcenable_cfg_allowed: u8 = 12,
        /// Priorities may be mapped.
        queue_pri2cos_cfg_allowed: u8 = 13,
        /// Bandwidth may be shared out.
        queue_cos2bw_cfg_allowed: u8 = 14,
        /// Queue id0.
        queue_id0: u8 = 15,
        /// Queue id0 service profile.
        queue_id0_service_profile: u8 = 16,
        /// Queue id1.
        queue_id1: u8 = 17,
        /// Queue id1 service profile.
        queue_id1_service_profile: u8 = 18,
        /// Queue id2.
        queue_id2: u8 = 19,
        /// Queue id2 service profile.
        queue_id2_service_profile: u8 = 20,
        /// Queue id3.
        queue_id3: u8 = 21,
        /// Queue id3 service profile.
        queue_id3_service_profile: u8 = 22,
        /// Queue id4.
        queue_id4: u8 = 23,
        /// Queue id4 service profile.
        queue_id4_service_profile: u8 = 24,
        /// Queue id5.
        queue_id5: u8 = 25,
        /// Queue id5 service profile.
        queue_id5_service_profile: u8 = 26,
        /// Queue id6.
        queue_id6: u8 = 27,
        /// Queue id6 service profile.
        queue_id6_service_profile: u8 = 28,
        /// Queue id7.
        queue_id7: u8 = 29,
        /// Queue id7 service profile.
        queue_id7_service_profile: u8 = 30,
        /// Queue id0 service profile type.
        queue_id0_service_profile_type: u8 = 31,
        /// Qid0 name.
        qid0_name: [u8; 16] = 32,
        /// Qid1 name.
        qid1_name: [u8; 16] = 48,
        /// Qid2 name.
        qid2_name: [u8; 16] = 64,
        /// Qid3 name.
        qid3_name: [u8; 16] = 80,
        /// Qid4 name.
        qid4_name: [u8; 16] = 96,
        /// Qid5 name.
        qid5_name: [u8; 16] = 112,
        /// Qid6 name.
        qid6_name: [u8; 16] = 128,
        /// Qid7 name.
        qid7_name: [u8; 16] = 144,
        /// Queue id1 service profile type.
        queue_id1_service_profile_type: u8 = 160,
        /// Queue id2 service profile type.
        queue_id2_service_profile_type: u8 = 161,
        /// Queue id3 service profile type.
        queue_id3_service_profile_type: u8 = 162,
        /// Queue id4 service profile type.
        queue_id4_service_profile_type: u8 = 163,
        /// Queue id5 service profile type.
        queue_id5_service_profile_type: u8 = 164,
        /// Queue id6 service profile type.
        queue_id6_service_profile_type: u8 = 165,
        /// Queue id7 service profile type.
        queue_id7_service_profile_type: u8 = 166,
        /// 1 when the response is complete; written last.
        valid: u8 = 167,
    }
}
