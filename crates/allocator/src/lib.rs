//! The memory allocator of the process: mimalloc, asked by its quickest way.
//!
//! Requests allocate on one thread and free on another; glibc's allocator spends a fifth of a GET on its locks then
//! (seen with perf). The `mimalloc` crate asks for the alignment of every block, which costs more instructions than a
//! plain block does and, for most sizes above a kibibyte, room for the alignment. Few types are aligned by more than
//! 16 bytes, and a type's size is a multiple of its alignment: nearly all blocks are aligned well enough as they come.
//! Always holds: a block is as aligned as its layout says.
//!
//! # The `unsafe` blocks
//!
//! [`GlobalAlloc`] is an unsafe trait, and mimalloc is C. Each method passes its arguments on; what they must be is
//! what the caller of [`GlobalAlloc`] promises.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// mimalloc aligns a block by this unless it is shorter (`MI_MAX_ALIGN_SIZE`; the rule for `malloc` of the C standard).
const ALIGNED_ANYWAY: usize = 16;

/// See the module's header.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// Whether a block of this size is so aligned without asking.
const fn is_plain(size: usize, alignment: usize) -> bool {
    alignment <= ALIGNED_ANYWAY && alignment <= size
}

#[expect(unsafe_code, reason = "an allocator is, see the head of this file")]
// SAFETY: mimalloc returns blocks that are as long as asked for, or null, and never unwinds; for their alignment see
// `is_plain`.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        match is_plain(size, alignment) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_malloc(size) }.cast(),
            // SAFETY: and any power of two as the alignment.
            false => unsafe { mi_malloc_aligned(size, alignment) }.cast(),
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        match is_plain(size, alignment) {
            // SAFETY: as in `alloc`.
            true => unsafe { mi_zalloc(size) }.cast(),
            // SAFETY: as in `alloc`.
            false => unsafe { mi_zalloc_aligned(size, alignment) }.cast(),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller vouches that the block is of this allocator, and not used any more.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_plain(size, layout.align()) {
            // SAFETY: the caller vouches for the block. One that stays is aligned; a new one is as in `alloc`.
            true => unsafe { mi_realloc(block.cast(), size) }.cast(),
            // SAFETY: the same.
            false => unsafe { mi_realloc_aligned(block.cast(), size, layout.align()) }.cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of these layouts, grown and shrunk, are aligned and keep what is in them.
    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        for alignment in (0..13).map(|power| 1 << power) {
            for size in (1..130).chain([1000, 1024, 1025, 1032, 5000, 12_840, 70_000, 3_000_000]) {
                check(size, alignment);
            }
        }
    }

    #[expect(unsafe_code, reason = "asks the allocator as the standard library does")]
    fn check(size: usize, alignment: usize) {
        let layout = Layout::from_size_align(size, alignment).unwrap();
        let is_aligned = |block: *mut u8| !block.is_null() && block.addr().is_multiple_of(alignment);
        // SAFETY: the layouts are those the blocks were made with; only bytes within them are touched.
        unsafe {
            let zeroed = Allocator.alloc_zeroed(layout);
            assert!(is_aligned(zeroed), "{size} bytes by {alignment}");
            assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|byte| *byte == 0));
            let block = Allocator.alloc(layout);
            assert!(is_aligned(block), "{size} bytes by {alignment}");
            block.write_bytes(7, size);
            let longer = Allocator.realloc(block, layout, 3 * size);
            assert!(is_aligned(longer), "{size} bytes by {alignment}, longer");
            assert!(std::slice::from_raw_parts(longer, size).iter().all(|byte| *byte == 7));
            let longer_layout = Layout::from_size_align(3 * size, alignment).unwrap();
            let shorter = Allocator.realloc(longer, longer_layout, 1);
            assert!(
                is_aligned(shorter) && shorter.read() == 7,
                "{size} bytes by {alignment}, one byte"
            );
            Allocator.dealloc(shorter, Layout::from_size_align(1, alignment).unwrap());
            Allocator.dealloc(zeroed, layout);
        }
    }
}
