//! Bytes that look like device code, the same for the same seed.
//!
//! Code of one architecture is made of instruction words of eight bytes, some of them frequent, one
//! in eight with an operand of its own. zstd makes 40 % of it; of real code objects it makes a third.

/// Instruction words of an architecture.
const WORDS: usize = 4096;

/// Architectures with their EF_AMDGPU_MACH.
pub const ARCHS: [Arch; 4] =
    [("gfx1030", 0x36), ("gfx1100", 0x41), ("gfx1101", 0x46), ("gfx1102", 0x47)];

/// Bytes of an ELF64 header.
const HEADER: usize = 64;

/// The alignment of code objects in bytes.
const PAGE: usize = 4096;

/// A generator of numbers (xorshift64*).
pub struct Numbers(u64);

impl Numbers {
    /// The generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// `len` bytes that do not compress.
    pub fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

/// `len` bytes of instructions.
pub fn instructions(arch: &str, seed: u64, len: usize) -> Vec<u8> {
    let name = arch.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(131) + u64::from(byte));
    let mut words = Numbers::new(name);
    let table: Vec<u64> = (0..WORDS).map(|_| words.next()).collect();
    let mut numbers = Numbers::new(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        let number = numbers.next();
        // The product of two numbers prefers small ones: frequent words are at the front.
        let digits = number.to_le_bytes().map(usize::from);
        let (one, two) = (digits[0] << 4 | digits[1] & 15, digits[2] << 4 | digits[1] >> 4);
        let word = table[one * two / WORDS];
        let operand = if number >> 61 == 0 { (number >> 32) & 0xffff } else { 0 };
        bytes.extend((word ^ operand << 8).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// An architecture by its name and number (EF_AMDGPU_MACH).
pub type Arch = (&'static str, u8);

/// A code object (version 5 of the ABI) of `len` bytes, of which the header of an ELF file is the
/// first.
pub fn code_object(arch: Arch, seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = header(arch.1);
    bytes.extend(instructions(arch.0, seed, len.saturating_sub(HEADER)));
    bytes
}

/// A code object like [`code_object`]'s, whose instructions do not compress.
#[allow(dead_code, reason = "benches have no use for it")]
pub fn noise_object(arch: Arch, seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = header(arch.1);
    bytes.extend(Numbers::new(seed).noise(len.saturating_sub(HEADER)));
    bytes
}

fn header(mach: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x40\x03");
    bytes[16] = 3; // ET_DYN
    bytes[18] = 224; // EM_AMDGPU
    bytes[20] = 1;
    bytes[48] = mach;
    bytes[52] = 64;
    bytes[54] = 56;
    bytes[58] = 64;
    bytes
}

/// An offload bundle with a code object of `code` bytes for each of `archs`, on pages.
pub fn bundle(
    archs: &[Arch],
    seed: u64,
    code: usize,
    object: impl Fn(Arch, u64, usize) -> Vec<u8>,
) -> Vec<u8> {
    let mut table = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    table.extend((archs.len() as u64).to_le_bytes());
    let mut bodies = Vec::new();
    let mut offset = PAGE;
    for (index, arch) in (0..).zip(archs) {
        let id = format!("hipv4-amdgcn-amd-amdhsa--{}", arch.0);
        for value in [offset, code, id.len()] {
            table.extend((value as u64).to_le_bytes());
        }
        table.extend(id.bytes());
        bodies.extend(object(*arch, seed | index, code));
        bodies.resize(bodies.len().next_multiple_of(PAGE), 0);
        offset = PAGE + bodies.len();
    }
    table.resize(PAGE, 0);
    table.extend(bodies);
    table
}
