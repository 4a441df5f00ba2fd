//! A bnxt_re NIC below any driver: bytes to the mailbox, as tests like them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use directverbs::bnxt_re::hwrm::mailbox::TRIGGER;
use directverbs::bnxt_re::hwrm::req_type::ReqType;
use directverbs_bare::pci::{Command, command};
use directverbs_bare::{Caching, DmaMemory, Host, Registers};
use directverbs_softnic::fabric::{Fabric, FabricOptions};
use directverbs_softnic::pci::{ModelRegisters, Slot};

use crate::bnxt_re_slots::{CHIPS, Machine};

/// No completion ring, the function itself.
const NONE: [u8; 2] = [0xff; 2];
/// What a request that the device does not have is answered with.
pub const UNSUPPORTED: u16 = 0xffff;

/// Sends bytes to the mailbox, as no driver would.
pub struct Raw {
    pub machine: Machine,
    pub registers: ModelRegisters,
    pub doorbells: ModelRegisters,
    pub response: <Slot as Host>::Dma,
    sequence: u16,
}

impl Raw {
    pub fn new(chip: usize) -> Self {
        let machine = Machine::plug(&Fabric::new(FabricOptions::default()), CHIPS[chip], 1);
        let slot = &machine.slot;
        command::enable(slot, Command::MEMORY | Command::BUS_MASTER);
        let map = |bar, len| slot.map_bar(bar, 0, len, Caching::Uncached).expect("a BAR");
        let (registers, doorbells) = (map(0, 0x1000), map(2, 0x2_0000));
        let response = slot.dma(4096, 4096).expect("memory");
        Self { registers, doorbells, response, machine, sequence: 0 }
    }

    /// Sends a request of 64 bytes with `values` at offsets; gives the error code and the response.
    pub fn ask(&mut self, req_type: ReqType, values: &[(usize, u32)]) -> (u16, Vec<u8>) {
        let mut request = [0; 64];
        for (at, value) in values {
            request[*at..*at + 4].copy_from_slice(&value.to_le_bytes());
        }
        self.send(req_type, &mut request)
    }

    /// Sends a request, whose header is filled in; one that does not fit the window goes through memory.
    pub fn send(&mut self, req_type: ReqType, request: &mut [u8]) -> (u16, Vec<u8>) {
        self.response.zero();
        request[..2].copy_from_slice(&req_type.0.to_le_bytes());
        request[2..4].copy_from_slice(&NONE);
        request[4..6].copy_from_slice(&self.sequence.to_le_bytes());
        request[6..8].copy_from_slice(&NONE);
        request[8..16].copy_from_slice(&self.response.device_address().to_le_bytes());
        let mut memory = self.machine.slot.dma(4096, 4096).expect("memory");
        if request.len() > 128 {
            assert!(memory.write(0, request));
            let (kind, len) = (req_type.0.to_le_bytes(), (request.len() as u16).to_le_bytes());
            let at = memory.device_address().to_le_bytes();
            let short = [&kind[..], &[0x21, 0x43], &NONE, &len, &at].concat();
            self.registers.write_words(0, &[&short[..], &[0; 112]].concat());
        } else {
            self.registers.write_words(0, request);
            self.registers.write_words(request.len(), &vec![0; 128 - request.len()]);
        }
        self.registers.write32(TRIGGER, 1);
        let half = |at: usize| u16::from_le_bytes(self.response.load(at).expect("in the page"));
        let (len, error) = (usize::from(half(6)), half(0));
        assert_eq!((half(2), half(4)), (req_type.0, self.sequence), "{req_type}");
        let mut bytes = vec![0; len];
        assert!(self.response.read(0, &mut bytes));
        assert_eq!(bytes.last(), Some(&1), "{req_type}: the valid byte");
        self.sequence += 1;
        (error, bytes)
    }

    pub fn done(&mut self, req_type: ReqType, values: &[(usize, u32)]) -> Vec<u8> {
        let (error, bytes) = self.ask(req_type, values);
        assert_eq!(error, 0, "{req_type}: {:?}", self.machine.violations());
        bytes
    }

    /// As far as a driver that is registered.
    pub fn registered(chip: usize) -> Self {
        let mut raw = Self::new(chip);
        for req_type in [ReqType::VER_GET, ReqType::FUNC_RESET, ReqType::FUNC_DRV_RGTR] {
            raw.done(req_type, &[]);
        }
        raw
    }

    pub fn violations(&self) -> usize {
        self.machine.violations().len()
    }
}

/// The half-word at `at`.
pub fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
