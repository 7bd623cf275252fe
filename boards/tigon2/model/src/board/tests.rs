use super::*;

/// The built-in file is the card of the reference: 1 MB, 16 KB and 8 KB scratch pads
/// (reference 2, C), 12AE:0001.
#[test]
fn the_default_board_is_the_fibre_acenic() {
    let board = Board::default();
    assert_eq!(board.clock.core_hz, 88_000_000);
    assert_eq!(board.memory.sram_bytes, 0x10_0000);
    assert_eq!(
        board.scratch_bytes(Cpu::A),
        tigon2_chip::memory::SCRATCH_A_BYTES
    );
    assert_eq!(
        board.scratch_bytes(Cpu::B),
        tigon2_chip::memory::SCRATCH_B_BYTES
    );
    assert_eq!((board.pci.vendor, board.pci.device), (0x12AE, 1));
}

/// The copper board differs in its PHY and in what the host sees of it: 12AE:0002.
#[test]
fn the_copper_board_is_the_same_card_with_a_phy() {
    let (fibre, copper) = (Board::default(), Board::copper());
    assert_eq!((copper.pci.vendor, copper.pci.device), (0x12AE, 2));
    assert_eq!(copper.phy.map(|phy| phy.address), Some(1));
    assert_eq!(copper.phy.map(|phy| phy.id >> 4), Some(0x20_604));
    assert_eq!((copper.memory, copper.clock), (fibre.memory, fibre.clock));
    assert_eq!((fibre.phy, fibre.wire), (None, copper.wire));
    assert_eq!(fibre.wire.partner, Partner::default());
}

/// Reference 11: a fibre board has one SERDES, the chip's own unless its file says
/// otherwise; a copper board has none.
#[test]
fn a_board_has_one_serdes_or_a_phy() {
    assert_eq!(Board::default().serdes(), Some(Serdes::OnChip));
    assert_eq!(Board::copper().serdes(), None);
    let external = Board::external_serdes();
    assert_eq!(external.serdes(), Some(Serdes::External));
    let fibre = Board::default();
    assert_eq!((external.pci, external.memory), (fibre.pci, fibre.memory));

    let with = |board: &str, line: &str| {
        let error = Board::from_toml(&format!("{board}\n[fibre]\n{line}\n"));
        error.unwrap_err().to_string()
    };
    let error = with(COPPER_TOML, "serdes = \"external\"");
    assert!(error.contains("[phy] and [fibre]"), "{error}");
    let plain = EXTERNAL_SERDES_TOML.replacen("[fibre]", "[of-another-reader]", 1);
    for (line, named) in [
        ("serdes = \"outside\"", "outside"),
        ("loop = 1", "loop"),
        ("", "serdes"),
    ] {
        let error = with(&plain, line);
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn a_board_file_may_name_a_partner() {
    let with =
        |words: &str| Board::from_toml(&format!("{COPPER_TOML}\n[wire]\npartner = \"{words}\"\n"));
    let partner = with("silent 100-full").expect("good words").wire.partner;
    assert_eq!(Ok(partner), "100-full silent".parse());
    assert!(with("1000").unwrap_err().to_string().contains("\"1000\""));
    let text = COPPER_TOML.replacen("address = 1", "address = 0", 1);
    let error = Board::from_toml(&text).unwrap_err().to_string();
    assert!(error.contains("phy.address"), "{error}");
}

#[test]
fn a_board_file_may_have_a_boot_memory() {
    assert_eq!(Board::default().boot.code, None);
    let text = format!("{DEFAULT_TOML}\n[boot]\ncode = \"boot.bin\"\nrequire_key = \"mine.pub\"\n");
    let board = Board::from_toml(&text).expect("good words");
    assert_eq!(board.boot.code, Some(PathBuf::from("boot.bin")));
    assert_eq!(board.boot.require_key, Some(PathBuf::from("mine.pub")));
}

#[test]
fn impossible_sizes_are_refused_with_the_key() {
    for (from, to, key) in [
        (
            "sram_bytes = 0x10_0000",
            "sram_bytes = 0x18_0000",
            "memory.sram_bytes",
        ),
        (
            "sram_bytes = 0x10_0000",
            "sram_bytes = 0x100_0000",
            "memory.sram_bytes",
        ),
        (
            "scratch_a_bytes = 0x4000",
            "scratch_a_bytes = 1",
            "memory.scratch_a_bytes",
        ),
        ("bytes = 0x4_0000 ", "bytes = 0x4_0001 ", "eeprom.bytes"),
        ("page_bytes = 256", "page_bytes = 100", "eeprom.page_bytes"),
        ("mhz = 66", "mhz = 50", "pci.mhz"),
        ("core_hz = 88_000_000", "core_hz = 0", "clock.core_hz"),
    ] {
        let text = DEFAULT_TOML.replacen(from, to, 1);
        assert_ne!(text, DEFAULT_TOML, "{from} is in the default file");
        let error = Board::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(key), "{error} names {key}");
    }
}

#[test]
fn misspelled_keys_are_refused_and_foreign_tables_are_not() {
    let misspelled = DEFAULT_TOML.replacen("core_hz", "core_hertz", 1);
    assert!(matches!(
        Board::from_toml(&misspelled),
        Err(BoardError::Syntax(_))
    ));
    let foreign = format!("{DEFAULT_TOML}\n[of-another-reader]\nsram_lat = 2\n");
    assert_eq!(Board::from_toml(&foreign).unwrap(), Board::default());
}
