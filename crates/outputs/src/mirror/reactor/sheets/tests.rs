//! Circles of style sheets, as a graph.

use super::circles::circles;

fn sorted(links: &[&[usize]]) -> Vec<Vec<usize>> {
    let links: Vec<Vec<usize>> = links.iter().map(|it| it.to_vec()).collect();
    let mut found = circles(&links);
    found.iter_mut().for_each(|circle| circle.sort_unstable());
    found
}

#[test]
fn what_is_imported_comes_first_and_a_circle_is_one() {
    assert_eq!(sorted(&[&[1], &[2], &[]]), [[2], [1], [0]]);
    assert_eq!(sorted(&[&[0]]), [[0]]);
    assert_eq!(sorted(&[&[1], &[2, 3], &[0], &[]]), [vec![3], vec![0, 1, 2]]);
    assert_eq!(sorted(&[&[], &[0, 2], &[1], &[2]]), [vec![0], vec![1, 2], vec![3]]);
}

#[test]
fn a_long_chain_needs_no_stack() {
    let links: Vec<Vec<usize>> = (0..200_000).map(|at| vec![(at + 1) % 200_000]).collect();
    assert_eq!(circles(&links).len(), 1);
}
