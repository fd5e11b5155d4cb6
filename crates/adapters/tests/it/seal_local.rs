//! Encryption with a key file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use adapters::encryption::LocalKey;
use adapters::encryption::local::{Entropy, Error};
use base::{Entropy as _, OsEntropy};
use model::Secret;
use port::{Encryption, Fault};
use tempfile::TempDir;

fn entropy() -> Entropy {
    Arc::new(|buffer: &mut [u8]| OsEntropy.fill(buffer))
}

fn load(path: &Path) -> Result<LocalKey, Error> {
    LocalKey::load_or_create(path, entropy())
}

fn refusal(path: &Path) -> String {
    load(path).err().expect("it must not start with this file").to_string()
}

#[tokio::test]
async fn secret_is_decrypted_for_its_purpose_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key");
    let (seal, secret) = (load(&path).unwrap(), Secret::new("pässword"));
    let sealed = seal.encrypt("instance/1/sso", &secret).await.unwrap();
    assert!(sealed.starts_with("v1:") && !sealed.contains("pässword"), "{sealed}");
    assert_ne!(
        seal.encrypt("instance/1/sso", &secret).await.unwrap(),
        sealed,
        "the nonce is random"
    );
    let again = load(&path).unwrap();
    assert_eq!(
        again.decrypt("instance/1/sso", &sealed).await,
        Ok(secret),
        "by another process, too"
    );
    let elsewhere = again.decrypt("instance/2/sso", &sealed).await;
    assert!(matches!(&elsewhere, Err(Fault::Refused(_))), "{elsewhere:?}");
    let empty = seal.encrypt("x", &Secret::new("")).await.unwrap();
    assert_eq!(seal.decrypt("x", &empty).await, Ok(Secret::new("")));
}

#[tokio::test]
async fn changed_ciphertext_is_refused() {
    let folder = TempDir::new().unwrap();
    let seal = load(&folder.path().join("key")).unwrap();
    let sealed = seal.encrypt("x", &Secret::new("secret")).await.unwrap();
    for at in 12..sealed.len() - 4 {
        let mut bytes = sealed.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(matches!(seal.decrypt("x", &changed).await, Err(Fault::Refused(_))), "{changed}");
    }
    let id = &sealed[3..11];
    for text in ["", "v1:", "secret", "v1::", "v2:a:b", &format!("v1:{id}:AAAA"), &sealed[..20]] {
        assert!(matches!(seal.decrypt("x", text).await, Err(Fault::Refused(_))), "{text}");
    }
    let unknown = seal.decrypt("x", "v1:00000000:AAAA").await.unwrap_err();
    assert!(unknown.to_string().contains("00000000"), "{unknown}");
}

#[tokio::test]
async fn new_key_encrypts_and_old_one_still_decrypts() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key");
    let seal = load(&path).unwrap();
    let old = seal.encrypt("x", &Secret::new("old")).await.unwrap();
    seal.add_key().unwrap();
    let new = seal.encrypt("x", &Secret::new("new")).await.unwrap();
    assert_ne!(old[..11], new[..11], "another key");
    let again = load(&path).unwrap();
    assert_eq!(again.decrypt("x", &old).await, Ok(Secret::new("old")));
    assert_eq!(again.decrypt("x", &new).await, Ok(Secret::new("new")));
    assert_eq!(again.encrypt("x", &Secret::new("z")).await.unwrap()[..11], new[..11]);
    let text = fs::read_to_string(&path).unwrap();
    let without_old: String = text
        .lines()
        .filter(|line| !line.starts_with(&old[3..11]))
        .fold(String::new(), |text, line| text + line + "\n");
    fs::write(&path, without_old).unwrap();
    let gone = load(&path).unwrap().decrypt("x", &old).await.unwrap_err();
    assert!(gone.to_string().contains("not in"), "{gone}");
}

#[test]
fn key_file_is_private_and_leaves_no_temporary_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key");
    load(&path).unwrap().add_key().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn concurrent_creators_get_the_same_key() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key");
    std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| load(&path).unwrap())).collect();
        let seals: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let sealed = seals[0].encrypt("x", &Secret::new("one")).await.unwrap();
            for seal in &seals {
                assert_eq!(seal.decrypt("x", &sealed).await, Ok(Secret::new("one")));
            }
        });
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn invalid_key_file_is_refused_without_showing_the_key() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key");
    load(&path).unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let key = good.lines().last().unwrap().split_once(' ').unwrap().1.to_owned();
    let cases = [
        (String::new(), "contains no key"),
        ("# only words\n".into(), "contains no key"),
        (good[..good.len() - 9].to_owned(), "line 3"),
        (good.replace(&key, &key.to_lowercase()), "line 3"),
        (good.clone() + "rubbish\n", "line 4 is not an id and a key"),
    ];
    for (text, why) in cases {
        fs::write(&path, &text).unwrap();
        let message = refusal(&path);
        let is_damaged = message.contains(why) && message.contains("damaged");
        assert!(is_damaged && !message.contains(&key), "{message}");
    }
    fs::write(&path, b"\xff\xfe").unwrap();
    assert!(refusal(&path).contains("not UTF-8"));

    fs::write(&path, &good).unwrap();
    for mode in [0o640, 0o604, 0o660] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(refusal(&path).contains("chmod 600"), "{mode:o}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    assert!(load(&path).is_ok(), "read-only is sufficient");
    assert!(refusal(&folder.path().join("none/key")).contains("cannot be read or written"));
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(refusal(folder.path()).contains("cannot be read or written"));
}
