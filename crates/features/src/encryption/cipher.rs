//! AES-256 in counter mode: any range of bytes is encrypted or decrypted by itself.
//!
//! Always holds: a random number is used as initialisation vector or key once.

use crate::encryption::keymaster::Key;
use aes::Aes256;
use bytes::{Bytes, BytesMut};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use world::Random;
use zeroize::Zeroizing;

/// The counter at the beginning.
pub(crate) type Iv = [u8; 16];

/// Encrypts and decrypts, which are the same.
pub(crate) struct Cipher(Ctr128BE<Aes256>);

impl Cipher {
    /// From the first byte.
    pub(crate) fn new(key: &Key, iv: &Iv) -> Self {
        Self(Ctr128BE::new(key.bytes().into(), iv.into()))
    }

    /// From the byte number `offset`.
    pub(crate) fn at(key: &Key, iv: &Iv, offset: u64) -> Self {
        let mut cipher = Self::new(key, iv);
        cipher.0.seek(offset);
        cipher
    }

    /// The next bytes, in place.
    pub(crate) fn apply(&mut self, bytes: &mut [u8]) {
        self.0.apply_keystream(bytes);
    }

    /// The next bytes; copied only when another owner still has them.
    pub(crate) fn pass(&mut self, bytes: Bytes) -> Bytes {
        let mut bytes = bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        self.apply(&mut bytes);
        bytes.freeze()
    }
}

/// `bytes` from their beginning, encrypted or decrypted.
pub(crate) fn crypt(key: &Key, iv: &Iv, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    Cipher::new(key, iv).apply(&mut bytes);
    bytes
}

/// A new initialisation vector.
pub(crate) fn new_iv(random: &dyn Random) -> Iv {
    let mut iv = [0; 16];
    random.fill(&mut iv);
    iv
}

/// A new key.
pub(crate) fn new_key(random: &dyn Random) -> Key {
    let mut bytes = Zeroizing::new([0; 32]);
    random.fill(bytes.as_mut_slice());
    Key::new(*bytes)
}

/// What decrypts the body of an object.
pub(super) struct BodyKey {
    pub(super) key: Key,
    pub(super) iv: [u8; 16],
}

impl BodyKey {
    /// The cipher from byte number `offset` of the object.
    pub(super) fn cipher_from(&self, offset: u64) -> Cipher {
        Cipher::at(&self.key, &self.iv, offset)
    }
}

/// `bytes 3-9/26` → 3.
pub(super) fn first_byte(content_range: &str) -> Option<u64> {
    content_range
        .trim()
        .strip_prefix("bytes ")?
        .split_once('-')?
        .0
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What OpenStack's cipher made of it.
    #[test]
    fn as_openstack_encrypts() {
        let text = crypt(&Key::new([b'k'; 32]), &[b'i'; 16], b"hello world, more than a block");
        assert_eq!(
            vocabulary::hex::encode(&text),
            "72d44e8d6c10dc4c22333de22db03ff5c7daca3dd19bdd3ab53e7bc1077c"
        );
    }

    proptest! {
        #[test]
        fn any_range_is_decrypted_as_part_of_the_whole(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            key: [u8; 32], iv: Iv, from in 0usize..300, size in 0usize..100,
        ) {
            let key = Key::new(key);
            let encrypted = crypt(&key, &iv, &body);
            let from = from.min(body.len());
            let to = (from + size).min(body.len());
            let mut cipher = Cipher::at(&key, &iv, from as u64);
            let middle = from + (to - from) / 3;
            let first = cipher.pass(Bytes::copy_from_slice(&encrypted[from..middle]));
            let rest = cipher.pass(Bytes::copy_from_slice(&encrypted[middle..to]));
            prop_assert_eq!([first, rest].concat(), &body[from..to]);
        }

        #[test]
        fn counters_run_over_as_they_should(offset in (u64::MAX >> 5)..(u64::MAX >> 4)) {
            // Far into an object, and from a counter about to overflow its lower half.
            let (key, iv) = (Key::new([1; 32]), [0xff; 16]);
            let mut near = [0; 40];
            Cipher::at(&key, &iv, offset).apply(&mut near);
            let mut far = [0; 24];
            Cipher::at(&key, &iv, offset + 16).apply(&mut far);
            prop_assert_eq!(&near[16..], &far);
        }
    }
}
