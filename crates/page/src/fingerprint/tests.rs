//! Fingerprints are frozen, and near-duplicates are near.

use super::*;

const ARTICLE: &str = "The harbour of the old town lies on the eastern side of the bay, where \
    two rivers meet before they reach the sea. Fishing boats have left it every morning since the \
    thirteenth century, and the market beside the quay still sells what they bring back. In the \
    nineteenth century a railway was built along the shore; it carried salt, timber and, in the \
    summer months, visitors from the capital who came for the baths. The station burned down in \
    1911 and was never rebuilt, but its clock was saved and now hangs in the reading room of the \
    town library, eleven minutes slow. Every year in June the town celebrates the return of the \
    fleet with a procession of lanterns, a regatta for rowing boats and a supper on the quay to \
    which everybody brings a chair. The museum in the former customs house shows models of the \
    boats, nets and instruments, and a film of the last herring season. It is open daily except \
    on Mondays, and admission is free for children and for residents of the district.";

const OTHER: &str = "A compiler reads a program and writes another one that means the same. Between \
    the two it keeps the program as a tree, then as a graph of small steps, and at last as a list \
    of instructions for one machine. Each of these forms makes some questions easy: the tree knows \
    what a name refers to, the graph knows which value reaches which use, and the list knows how \
    many registers are left. Optimisation is the art of asking a question in the form where it is \
    cheap, and of not asking it again. Most of the time is spent on memory: finding what can stay \
    in a register, what may be read early and what must be written late.";

#[test]
fn fingerprints_are_frozen() {
    // These values are stored in data directories; if this test fails, the format changed.
    assert_eq!(simhash(ARTICLE), 0x965c_98a0_a2ca_29fe);
    assert_eq!(simhash("東京都は日本の首都である"), 0x989e_dbae_8bda_6409);
    assert_eq!(simhash("hello"), 0xa318_36a2_937f_048e);
}

#[test]
fn a_text_without_words_has_simhash_zero() {
    assert_eq!(simhash(""), 0);
    assert_eq!(simhash(" -- !"), 0);
}

#[test]
fn small_edits_keep_texts_near_and_other_texts_are_far() {
    let base = simhash(ARTICLE);
    let edits = [
        ARTICLE.replace("1911", "1912"),
        ARTICLE.replace("Mondays", "Tuesdays"),
        ARTICLE.to_uppercase(),
        ARTICLE.replace(", ", " – "),
        format!("{ARTICLE} Last changed on 3 May."),
    ];
    for edited in &edits {
        assert!(
            distance(base, simhash(edited)) <= NEAR_BITS,
            "{}",
            distance(base, simhash(edited))
        );
    }
    assert!(distance(base, simhash(OTHER)) >= 20);
}

#[test]
fn only_markup_and_case_leave_the_simhash_alone() {
    assert_eq!(simhash("One two, three four."), simhash("one TWO\nthree — four"));
    assert_ne!(simhash("one two three four"), simhash("four three two one"));
}

#[test]
fn counts_stay_exact_beyond_the_narrow_counters() {
    // The same shingles over and over vote as one round of them does, but for the seams.
    let once = "alpha beta gamma ";
    assert!(distance(simhash(&once.repeat(1_000)), simhash(&once.repeat(2_000))) <= 1);
    let mut naive = [0u64; 64];
    let mut votes = Votes::new();
    for number in 0..1_000u64 {
        let hash = mix(number);
        votes.add(hash);
        for (bit, count) in naive.iter_mut().enumerate() {
            *count += hash >> bit & 1;
        }
    }
    let expected = naive
        .iter()
        .enumerate()
        .fold(0u64, |all, (bit, &count)| all | u64::from(count > 500) << bit);
    assert_eq!(votes.result(), expected);
}

#[test]
fn content_and_text_are_hashed_apart() {
    assert_eq!(content_hash(b"<p>a</p>"), crate::ids::hash128(b"<p>a</p>"));
    assert_eq!(text_hash("a"), crate::ids::hash128(b"a"));
}
