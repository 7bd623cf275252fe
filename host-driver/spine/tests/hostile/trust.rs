//! Whose containers are trusted, and what the policy grants them.

use crate::{BASE, ID, init, policy_text, runtime, signer};
use spine_image::{Grade, ImageError};
use spine_linker::link::{LinkError, Place, link};
use spine_linker::policy::{Policy, PolicyError};
use spine_linker::sign::{TrustError, trusted};

#[test]
fn who_did_not_sign_is_not_trusted() {
    let built = init(&[]);
    let container = signer(1).sign(&built);
    trusted(&container, &ID).expect("as it was signed");
    for byte in 0..container.len() {
        let mut flipped = container.clone();
        flipped[byte] ^= 0x10;
        assert!(trusted(&flipped, &ID).is_err(), "byte {byte}");
    }
    let error = trusted(&container, &[8; 16]).expect_err("another build");
    assert_eq!(error, TrustError::OtherBuild);
    // Somebody else's signature under the name of one who is granted much.
    let forged = built.finish(signer(1).public(), |_| [0; 64]);
    assert_eq!(
        trusted(&forged, &ID).expect_err("forged"),
        TrustError::Untrusted
    );
    let error = trusted(&container[..60], &ID).expect_err("cut");
    assert!(matches!(error, TrustError::Image(ImageError::Cut { .. })));
}

/// Whatever the policy asks for: a container may name a grade, but no wall stands behind it.
#[test]
fn a_grade_that_nothing_proves_is_not_linked() {
    let mut built = init(&[]);
    built.grade = Grade::Sandbox;
    let container = signer(1).sign(&built);
    let image = trusted(&container, &ID).expect("signed");
    for needs in ["language", "sandbox"] {
        let policy = Policy::parse(&policy_text(&format!("grade = \"{needs}\"")));
        let policy = policy.expect("a policy");
        let grant = policy.grant(&signer(1).public(), image.grade());
        let place = Place::in_arena(BASE, 0x1000);
        let linked = link(&image, &runtime(), &[], grant.expect("granted"), place);
        assert_eq!(linked, Err(LinkError::Unproven(Grade::Sandbox)), "{needs}");
    }
}

#[test]
fn the_policy_grants_what_it_says_and_to_whom() {
    let policy = Policy::parse(&policy_text("")).expect("a policy");
    let error = policy.grant(&signer(2).public(), Grade::Language);
    assert!(matches!(error, Err(PolicyError::UnknownSigner(_))));
    let sandbox = Policy::parse(&policy_text("grade = \"sandbox\"")).expect("a policy");
    let error = sandbox.grant(&signer(1).public(), Grade::Language);
    let needs_more = matches!(
        error,
        Err(PolicyError::Grade {
            needs: Grade::Sandbox,
            has: Grade::Language
        })
    );
    assert!(needs_more);
    for (text, refused) in [
        ("[[signer]]\nkey = 5\n".to_owned(), "key"),
        (
            policy_text("").replace("watchdog = 10", "watchdog = 9"),
            "watchdog",
        ),
        (
            policy_text("").replace("watchdog = 10", "watchdog = 256"),
            "watchdog",
        ),
        (
            policy_text("").replace("stack = 200", "stack = 2000"),
            "stack",
        ),
        (policy_text("colour = 9"), "colour"),
        (policy_text("").replace("key = \"", "key = \"zz"), "key"),
    ] {
        let error = Policy::parse(&text).expect_err(refused);
        assert!(error.to_string().contains(refused), "{error}");
    }
}
