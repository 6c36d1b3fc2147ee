use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;

const PLACE: Place<'_> = Place { task_id: "task", config_id: "config" };

fn ring() -> Keys {
    Keys::new(Key::random(), Vec::new())
}

fn secrets() -> PushSecrets {
    PushSecrets { token: Some(Secret::new("t0ken")), credentials: None }
}

/// A folder of one test, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longhaul-push-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_was_sealed_opens_again_and_is_not_legible() {
    let keys = ring();
    let sealed = keys.seal_secrets(&secrets(), PLACE);
    assert!(!sealed.windows(5).any(|bytes| bytes == b"t0ken"));
    assert_ne!(sealed, keys.seal_secrets(&secrets(), PLACE));
    assert_eq!(keys.open_secrets(&sealed, PLACE), Ok(secrets()));
}

#[test]
fn a_value_that_was_moved_to_another_config_does_not_open() {
    let keys = ring();
    let sealed = keys.seal(b"x", PLACE);
    // The third has the same letters, divided elsewhere.
    for (task_id, config_id) in [("other", "config"), ("task", "other"), ("taskc", "onfig"), ("", "taskconfig")] {
        assert_eq!(keys.open(&sealed, Place { task_id, config_id }), Err(UnsealError::Damaged));
    }
}

#[test]
fn a_changed_value_does_not_open_wherever_the_change_is() {
    let keys = ring();
    let sealed = keys.seal(b"secret", PLACE);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        keys.open(&changed, PLACE).unwrap_err();
        keys.open(&sealed[..at], PLACE).unwrap_err();
    }
}

#[test]
fn another_ring_names_the_key_that_it_lacks() {
    let keys = ring();
    let sealed = keys.seal(b"x", PLACE);
    assert_eq!(ring().open(&sealed, PLACE), Err(UnsealError::UnknownKey(keys.current_id())));
    assert_eq!(ring().open(b"", PLACE), Err(UnsealError::Form));
}

#[test]
fn a_rotated_ring_opens_the_old_and_seals_it_again_with_the_new() {
    let (old, new) = (Key::random(), Key::random());
    let before = Keys::new(old.clone(), Vec::new());
    let during = Keys::new(new.clone(), vec![old]);
    let after = Keys::new(new, Vec::new());
    let sealed = before.seal(b"x", PLACE);
    let resealed = during.reseal(&sealed, PLACE).unwrap().unwrap();
    assert_eq!(after.open(&resealed, PLACE).unwrap().as_slice(), b"x");
    assert_eq!(during.reseal(&resealed, PLACE), Ok(None));
    after.open(&sealed, PLACE).unwrap_err();
    assert!(during.knows(&before.fingerprint()) && during.knows(&after.fingerprint()));
    assert!(!after.knows(&before.fingerprint()));
}

#[test]
fn fingerprints_are_kept_as_text_and_differ_from_ids() {
    let keys: Keys = "00".repeat(32).parse().unwrap();
    let kept = Fingerprint::from_text(keys.fingerprint().as_str());
    assert!(keys.knows(&kept) && !ring().knows(&kept));
    assert_eq!(kept.as_str().len(), 32);
    assert!(!kept.as_str().starts_with(&keys.current_id().to_string()));
}

#[test]
fn keys_are_read_in_hex_and_base64_and_nothing_else() {
    let hex = "00ff".repeat(16);
    let key: Key = hex.parse().unwrap();
    let standard = key.to_text();
    let url_safe = standard.replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned();
    for text in [standard.as_str(), &url_safe, &hex.to_uppercase(), &format!(" {hex}\n")] {
        assert_eq!(text.parse::<Key>().unwrap().id(), key.id(), "{text}");
    }
    for text in ["", "secret", "00ff", &"zz".repeat(32), &"é".repeat(32), &"00".repeat(33)] {
        assert_eq!(text.parse::<Key>().unwrap_err(), InvalidKey, "{text}");
    }
}

#[test]
fn keys_and_secrets_are_never_printed() {
    let key: Key = "00ff".repeat(16).parse().unwrap();
    let printed = format!("{key:?} {:?} {:?}", Keys::new(key.clone(), vec![key.clone()]), secrets());
    assert!(!printed.contains(key.to_text().as_str()) && !printed.contains("t0ken"), "{printed}");
}

#[test]
fn a_key_file_is_made_once_for_its_owner_alone() {
    let folder = Folder::new("made");
    let path = folder.0.join("push.key");
    let made = Keys::read_or_make(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Keys::read_or_make(&path).unwrap().fingerprint(), made.fingerprint());
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn processes_that_make_it_at_once_get_one_key() {
    let folder = Folder::new("race");
    let path = folder.0.join("push.key");
    std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| Keys::read_or_make(&path).unwrap().fingerprint())).collect();
        let mut made: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
        made.dedup();
        assert_eq!(made.len(), 1);
    });
}

#[test]
fn a_key_file_that_others_may_read_is_refused() {
    let folder = Folder::new("mode");
    let path = folder.0.join("push.key");
    Keys::read_or_make(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(Keys::read_or_make(&path), Err(KeyFileError::Mode { .. })));
}

#[test]
fn a_key_file_has_its_current_key_first() {
    let folder = Folder::new("lines");
    let path = folder.0.join("push.key");
    let old = Keys::read_or_make(&path).unwrap();
    let new = Key::random();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("# made today\n{}\n\n{text}", *new.to_text())).unwrap();
    let both = Keys::read(&path).unwrap();
    assert_eq!(both.current_id(), new.id());
    assert!(both.knows(&old.fingerprint()));
    let in_one_line: Keys = format!("{},{}", *new.to_text(), text.trim()).parse().unwrap();
    assert!(in_one_line.current_id() == new.id() && in_one_line.knows(&old.fingerprint()));
    std::fs::write(&path, "# nothing\n").unwrap();
    assert!(matches!(Keys::read(&path), Err(KeyFileError::Content { .. })));
}
