//! The functions of the fuzz targets, for a moment: on seeds, and on bytes that are made of them.

#[path = "../fuzz/src/lib.rs"]
mod targets;

/// Inputs of each target beside the seeds.
const INPUTS: u64 = 300;

/// Something to begin with, for each target.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test");
    let folder = std::path::Path::new(&folder).join("fuzz/seeds").join(name);
    let files = std::fs::read_dir(folder).expect("a folder of seeds");
    let mut all: Vec<_> = files
        .map(|file| std::fs::read(file.expect("a file").path()).expect("a file"))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "no seeds of {name}");
    all
}

fn run(name: &str, target: fn(&[u8])) {
    let seeds = seeds(name);
    for seed in &seeds {
        target(seed);
    }
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize
    };
    for _ in 0..INPUTS {
        let mut bytes = seeds[random() % seeds.len()].clone();
        // Joined with another, and with some bytes changed, cut or added.
        if random() % 2 == 0 {
            bytes.extend(&seeds[random() % seeds.len()]);
        }
        for _ in 0..random() % 16 {
            if !bytes.is_empty() {
                let place = random() % bytes.len();
                bytes[place] = random() as u8;
            }
        }
        match random() % 4 {
            0 => bytes.truncate(random() % (bytes.len() + 1)),
            1 => bytes.extend((0..random() % 200).map(|_| random() as u8)),
            _ => {}
        }
        target(&bytes);
    }
}

#[test]
fn control() {
    run("control", targets::control);
}

#[test]
fn rings() {
    run("rings", targets::rings);
}

#[test]
fn descriptors() {
    run("descriptors", targets::descriptors);
}

#[test]
fn http() {
    run("http", targets::http);
}

#[test]
fn frames() {
    run("frames", targets::frames);
}
