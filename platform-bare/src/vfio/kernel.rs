//! Calls of the kernel. Structures, numbers and flags are those of its headers `linux/vfio.h` and `linux/iommufd.h`.

use core::ffi::c_void;
use core::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::vec;
use std::vec::Vec;

use iommufd_bindings::iommufd::{
    IOMMUFD_CMD_IOAS_ALLOC, IOMMUFD_CMD_IOAS_IOVA_RANGES, IOMMUFD_CMD_IOAS_MAP, IOMMUFD_CMD_IOAS_UNMAP,
    IOMMUFD_TYPE, iommu_ioas_alloc, iommu_ioas_iova_ranges, iommu_ioas_map, iommu_ioas_unmap,
    iommu_iova_range, iommufd_ioas_map_flags_IOMMU_IOAS_MAP_FIXED_IOVA as FIXED_IOVA,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_READABLE as READABLE,
    iommufd_ioas_map_flags_IOMMU_IOAS_MAP_WRITEABLE as WRITEABLE,
};
use rustix::io::{Errno, Result};
use rustix::ioctl::{IntegerSetter, Ioctl, IoctlOutput, NoArg, Opcode, ioctl, opcode};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DEVICE_FLAGS_RESET, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE,
    VFIO_GROUP_FLAGS_VIABLE, VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE,
    VFIO_REGION_INFO_CAP_SPARSE_MMAP, VFIO_REGION_INFO_FLAG_CAPS, VFIO_REGION_INFO_FLAG_MMAP, VFIO_TYPE,
    VFIO_TYPE1v2_IOMMU, vfio_device_attach_iommufd_pt, vfio_device_bind_iommufd, vfio_device_info,
    vfio_group_status, vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap, vfio_iommu_type1_info,
    vfio_region_info,
};

const fn vfio(number: u32) -> Opcode {
    opcode::none(VFIO_TYPE, (VFIO_BASE + number) as u8)
}

const fn iommufd(number: u32) -> Opcode {
    opcode::none(IOMMUFD_TYPE, number as u8)
}

const GET_API_VERSION: Opcode = vfio(0);
const SET_IOMMU: Opcode = vfio(2);
const GROUP_GET_STATUS: Opcode = vfio(3);
const GROUP_SET_CONTAINER: Opcode = vfio(4);
const GROUP_GET_DEVICE_FD: Opcode = vfio(6);
const DEVICE_GET_INFO: Opcode = vfio(7);
const DEVICE_GET_REGION_INFO: Opcode = vfio(8);
const DEVICE_RESET: Opcode = vfio(11);
const IOMMU_GET_INFO: Opcode = vfio(12);
const IOMMU_MAP_DMA: Opcode = vfio(13);
const IOMMU_UNMAP_DMA: Opcode = vfio(14);
const DEVICE_BIND_IOMMUFD: Opcode = vfio(18);
const DEVICE_ATTACH_IOMMUFD_PT: Opcode = vfio(19);
const IOAS_ALLOC: Opcode = iommufd(IOMMUFD_CMD_IOAS_ALLOC);
const IOAS_IOVA_RANGES: Opcode = iommufd(IOMMUFD_CMD_IOAS_IOVA_RANGES);
const IOAS_MAP: Opcode = iommufd(IOMMUFD_CMD_IOAS_MAP);
const IOAS_UNMAP: Opcode = iommufd(IOMMUFD_CMD_IOAS_UNMAP);

/// Bytes that a structure with capabilities behind it may have: the kernel's are far shorter.
const LONGEST: usize = 1 << 16;

/// A call with the address of a structure, and a number as result.
struct Call<const OPCODE: Opcode>(*mut c_void);

// SAFETY: `call` is the only one that makes it, by whose contract the address is that of the opcode's structure.
unsafe impl<const OPCODE: Opcode> Ioctl for Call<OPCODE> {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        OPCODE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<i32> {
        Ok(out)
    }
}

/// Calls the kernel with a structure.
///
/// # Safety
/// `argument` points to what belongs to the opcode and is as long as it says itself; addresses in it stand for memory that
/// the kernel may use.
unsafe fn call<const OPCODE: Opcode>(fd: impl AsFd, argument: *mut c_void) -> Result<i32> {
    // SAFETY: by this function's contract.
    unsafe { ioctl(fd, Call::<OPCODE>(argument)) }
}

/// As [`call`], with the structure itself.
///
/// # Safety
/// As there.
unsafe fn call_with<const OPCODE: Opcode, T>(fd: impl AsFd, argument: &mut T) -> Result<i32> {
    // SAFETY: by this function's contract.
    unsafe { call::<OPCODE>(fd, core::ptr::from_mut(argument).cast()) }
}

/// The size of an argument, as its first field says it.
const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// Version of the interface of containers.
pub fn api_version(container: &OwnedFd) -> Result<i32> {
    // SAFETY: the opcode takes nothing.
    unsafe { call::<GET_API_VERSION>(container, core::ptr::null_mut()) }
}

/// Whether all functions of a group are there for processes.
pub fn is_viable(group: &OwnedFd) -> Result<bool> {
    let mut status = vfio_group_status { argsz: size::<vfio_group_status>(), ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<GROUP_GET_STATUS, _>(group, &mut status) }?;
    Ok(status.flags & VFIO_GROUP_FLAGS_VIABLE != 0)
}

/// Puts a group into a container.
pub fn set_container(group: &OwnedFd, container: &OwnedFd) -> Result<()> {
    let mut fd = container.as_raw_fd();
    // SAFETY: the opcode takes the address of a descriptor.
    unsafe { call_with::<GROUP_SET_CONTAINER, _>(group, &mut fd) }.map(drop)
}

/// Gives a container with a group its IOMMU: type 1, version 2, which all of x86 and Arm are.
pub fn set_iommu(container: &OwnedFd) -> Result<()> {
    // SAFETY: the opcode takes a number.
    let setter = unsafe { IntegerSetter::<SET_IOMMU>::new_usize(VFIO_TYPE1v2_IOMMU as usize) };
    // SAFETY: as above.
    unsafe { ioctl(container, setter) }
}

/// The descriptor of a function of a group.
pub fn device_of_group(group: &OwnedFd, name: &str) -> Result<OwnedFd> {
    let mut name: Vec<u8> = name.bytes().chain([0]).collect();
    // SAFETY: the opcode takes a name that ends with a zero byte.
    let fd = unsafe { call::<GROUP_GET_DEVICE_FD>(group, name.as_mut_ptr().cast()) }?;
    // SAFETY: the kernel has just opened it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ties a character device to an iommufd.
pub fn bind(device: &OwnedFd, iommufd: &OwnedFd) -> Result<()> {
    let iommufd = iommufd.as_raw_fd();
    let argsz = size::<vfio_device_bind_iommufd>();
    let mut bind = vfio_device_bind_iommufd { argsz, iommufd, ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<DEVICE_BIND_IOMMUFD, _>(device, &mut bind) }.map(drop)
}

/// A new address space.
pub fn new_address_space(iommufd: &OwnedFd) -> Result<u32> {
    let mut alloc = iommu_ioas_alloc { size: size::<iommu_ioas_alloc>(), ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<IOAS_ALLOC, _>(iommufd, &mut alloc) }?;
    Ok(alloc.out_ioas_id)
}

/// Lets a function use an address space.
pub fn attach(device: &OwnedFd, address_space: u32) -> Result<()> {
    let argsz = size::<vfio_device_attach_iommufd_pt>();
    let mut attach = vfio_device_attach_iommufd_pt { argsz, pt_id: address_space, ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<DEVICE_ATTACH_IOMMUFD_PT, _>(device, &mut attach) }.map(drop)
}

/// Device addresses that an address space may map.
pub fn ranges_of_space(iommufd: &OwnedFd, address_space: u32) -> Result<Vec<RangeInclusive<u64>>> {
    let mut ranges = vec![iommu_iova_range::default(); 64];
    loop {
        let mut query = iommu_ioas_iova_ranges {
            size: size::<iommu_ioas_iova_ranges>(),
            ioas_id: address_space,
            num_iovas: ranges.len() as u32,
            allowed_iovas: ranges.as_mut_ptr().expose_provenance() as u64,
            ..Default::default()
        };
        // SAFETY: the structure is the opcode's, and says where the ranges go, and how many there is room for.
        let done = unsafe { call_with::<IOAS_IOVA_RANGES, _>(iommufd, &mut query) };
        let count = query.num_iovas as usize;
        match done {
            Err(Errno::MSGSIZE) if (ranges.len()..LONGEST).contains(&count) => {
                ranges.resize(count + 1, iommu_iova_range::default());
            }
            Err(errno) => return Err(errno),
            Ok(_) => return Ok(ranges.iter().take(count).map(|range| range.start..=range.last).collect()),
        }
    }
}

/// Device addresses that a container may map; `None` if the kernel is too old to tell.
pub fn ranges_of_container(container: &OwnedFd) -> Result<Option<Vec<RangeInclusive<u64>>>> {
    let info = vfio_iommu_type1_info { argsz: size::<vfio_iommu_type1_info>(), ..Default::default() };
    // SAFETY: the structure is the opcode's.
    let (info, bytes) = unsafe { with_capabilities::<IOMMU_GET_INFO, _>(container, info) }?;
    let at = if info.flags & VFIO_IOMMU_INFO_CAPS == 0 { 0 } else { info.cap_offset };
    let found = capability(&bytes, at, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE as u16);
    Ok(found.map(|body| pairs(body).map(|[first, last]| first..=last).collect()))
}

/// Maps memory of the process at device address `iova`.
///
/// # Safety
/// The memory stays mapped in the process until it is unmapped there or the container is gone, and is for devices to write.
pub unsafe fn map_in_container(container: &OwnedFd, vaddr: u64, iova: u64, len: usize) -> Result<()> {
    let argsz = size::<vfio_iommu_type1_dma_map>();
    let flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    let mut map = vfio_iommu_type1_dma_map { argsz, flags, vaddr, iova, size: len as u64 };
    // SAFETY: the structure is the opcode's; the rest by this function's contract.
    unsafe { call_with::<IOMMU_MAP_DMA, _>(container, &mut map) }.map(drop)
}

/// Maps memory of the process at device address `iova`.
///
/// # Safety
/// The memory stays mapped in the process until it is unmapped there or the address space is gone, and is for devices to write.
pub unsafe fn map_in_space(iommufd: &OwnedFd, space: u32, vaddr: u64, iova: u64, len: usize) -> Result<()> {
    let mut map = iommu_ioas_map {
        size: size::<iommu_ioas_map>(),
        flags: FIXED_IOVA | READABLE | WRITEABLE,
        ioas_id: space,
        user_va: vaddr,
        length: len as u64,
        iova,
        ..Default::default()
    };
    // SAFETY: the structure is the opcode's; the rest by this function's contract.
    unsafe { call_with::<IOAS_MAP, _>(iommufd, &mut map) }.map(drop)
}

/// Unmaps `len` bytes that were mapped at once.
pub fn unmap_from_container(container: &OwnedFd, iova: u64, len: usize) -> Result<()> {
    let argsz = size::<vfio_iommu_type1_dma_unmap>();
    let mut unmap = vfio_iommu_type1_dma_unmap { argsz, iova, size: len as u64, ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<IOMMU_UNMAP_DMA, _>(container, &mut unmap) }.map(drop)
}

/// Unmaps `len` bytes that were mapped at once.
pub fn unmap_from_space(iommufd: &OwnedFd, space: u32, iova: u64, len: usize) -> Result<()> {
    let size = size::<iommu_ioas_unmap>();
    let mut unmap = iommu_ioas_unmap { size, ioas_id: space, iova, length: len as u64 };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<IOAS_UNMAP, _>(iommufd, &mut unmap) }.map(drop)
}

/// Whether a function can be reset.
pub fn can_reset(device: &OwnedFd) -> Result<bool> {
    let mut info = vfio_device_info { argsz: size::<vfio_device_info>(), ..Default::default() };
    // SAFETY: the structure is the opcode's.
    unsafe { call_with::<DEVICE_GET_INFO, _>(device, &mut info) }?;
    Ok(info.flags & VFIO_DEVICE_FLAGS_RESET != 0)
}

/// Resets a function. Its configuration is as before.
pub fn reset(device: &OwnedFd) -> Result<()> {
    // SAFETY: the opcode takes nothing.
    unsafe { ioctl(device, NoArg::<DEVICE_RESET>::new()) }
}

/// A region of a device: a BAR, or configuration space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Length in bytes.
    pub len: u64,
    /// Where it begins in the device's file.
    pub offset: u64,
    /// The parts that can be mapped: offset in the region, and length.
    pub parts: Vec<[u64; 2]>,
}

/// What the kernel tells of a region.
pub fn region(device: &OwnedFd, index: u32) -> Result<Region> {
    let info = vfio_region_info { argsz: size::<vfio_region_info>(), index, ..Default::default() };
    // SAFETY: the structure is the opcode's.
    let (info, bytes) = unsafe { with_capabilities::<DEVICE_GET_REGION_INFO, _>(device, info) }?;
    let at = if info.flags & VFIO_REGION_INFO_FLAG_CAPS == 0 { 0 } else { info.cap_offset };
    let sparse = capability(&bytes, at, VFIO_REGION_INFO_CAP_SPARSE_MMAP as u16);
    let parts = match sparse {
        _ if info.flags & VFIO_REGION_INFO_FLAG_MMAP == 0 || info.size == 0 => Vec::new(),
        Some(body) => pairs(body).collect(),
        None => vec![[0, info.size]],
    };
    Ok(Region { len: info.size, offset: info.offset, parts })
}

/// Calls the kernel with a structure that capabilities may follow. Gives the structure, and all bytes.
///
/// # Safety
/// The structure is the opcode's, of plain integers, and its first 32 bits say how long the argument is.
unsafe fn with_capabilities<const OPCODE: Opcode, T: Copy>(fd: &OwnedFd, first: T) -> Result<(T, Vec<u8>)> {
    let mut room = size_of::<T>();
    loop {
        // In words of 64 bits, for the alignment.
        let mut buffer = vec![0u64; room.div_ceil(8)];
        let argument: *mut T = buffer.as_mut_ptr().cast();
        // SAFETY: there is room for the structure, and as much behind it as its first word then says.
        let (told, needed) = unsafe {
            argument.write(first);
            argument.cast::<u32>().write(room as u32);
            call::<OPCODE>(fd, argument.cast())?;
            (argument.read(), argument.cast::<u32>().read() as usize)
        };
        if needed <= room || needed > LONGEST {
            return Ok((told, buffer.into_iter().flat_map(u64::to_ne_bytes).collect()));
        }
        room = needed;
    }
}

/// What follows the header of a capability of the list that begins at `at`, if there is one. 0 ends the list.
fn capability(bytes: &[u8], mut at: u32, id: u16) -> Option<&[u8]> {
    // A list that leads back ends here, too.
    for _ in 0..bytes.len() {
        let (header, body) = bytes.get(at as usize..).filter(|_| at != 0)?.split_first_chunk::<8>()?;
        let [a, b, _, _, next @ ..] = *header;
        if u16::from_ne_bytes([a, b]) == id {
            return Some(body);
        }
        at = u32::from_ne_bytes(next);
    }
    None
}

/// The pairs of 64 bits of a capability that begins with their number, in 32 bits, and 32 more.
fn pairs(body: &[u8]) -> impl Iterator<Item = [u64; 2]> {
    let (count, pairs) = body.split_first_chunk::<8>().map_or((0, &[][..]), |([a, b, c, d, ..], rest)| {
        (u32::from_ne_bytes([*a, *b, *c, *d]) as usize, rest)
    });
    let (words, _) = pairs.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().take(count).map(|pair| pair.map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list from 32 on: something else, and then the parts that can be mapped.
    fn list(count: u32, next: u32) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        bytes.extend([7u16, 1].map(u16::to_ne_bytes).concat());
        bytes.extend(40u32.to_ne_bytes());
        bytes.extend([1u16, 1].map(u16::to_ne_bytes).concat());
        bytes.extend([next, count, 0].map(u32::to_ne_bytes).concat());
        bytes.extend([0u64, 0x1000, 0x3000, 0x5000].map(u64::to_ne_bytes).concat());
        bytes
    }

    fn parts(bytes: &[u8], at: u32) -> Option<Vec<[u64; 2]>> {
        capability(bytes, at, 1).map(|body| pairs(body).collect())
    }

    #[test]
    fn a_capability_is_found_in_the_list() {
        let both = vec![[0, 0x1000], [0x3000, 0x5000]];
        assert_eq!(parts(&list(2, 0), 32), Some(both.clone()));
        assert_eq!(parts(&list(1, 0), 40), Some(vec![both[0]]));
        assert_eq!(parts(&list(2, 0), 0), None, "there is no list");
    }

    #[test]
    fn a_list_that_makes_no_sense_ends() {
        assert_eq!(capability(&list(2, 32), 32, 9), None, "it leads back");
        assert_eq!(parts(&list(2, 0), u32::MAX), None);
        assert_eq!(parts(&list(2, 0)[..60], 32), Some(vec![]), "cut short");
        assert_eq!(parts(&list(u32::MAX, 0), 32).map(|parts| parts.len()), Some(2));
    }
}
