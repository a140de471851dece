//! Circles in a graph: strongly connected components, by Tarjan's algorithm without recursion.

/// The components of a graph, each after those that it leads to; what is in no circle is alone.
pub(super) fn circles(links: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        links,
        numbers: vec![None; links.len()],
        lowest: vec![0; links.len()],
        is_open: vec![false; links.len()],
        open: Vec::new(),
        found: Vec::new(),
        next: 0,
    };
    for node in 0..links.len() {
        if search.numbers[node].is_none() {
            search.from(node);
        }
    }
    search.found
}

struct Search<'l> {
    links: &'l [Vec<usize>],
    /// In which order nodes were met.
    numbers: Vec<Option<usize>>,
    /// The first node that each leads back to.
    lowest: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    found: Vec<Vec<usize>>,
    next: usize,
}

/// A node on the way, and how many of its links were followed.
struct Visit {
    node: usize,
    followed: usize,
}

impl Search<'_> {
    fn meet(&mut self, node: usize) -> Visit {
        self.numbers[node] = Some(self.next);
        self.lowest[node] = self.next;
        self.next += 1;
        self.open.push(node);
        self.is_open[node] = true;
        Visit { node, followed: 0 }
    }

    fn from(&mut self, start: usize) {
        let mut way = vec![self.meet(start)];
        while let Some(visit) = way.last_mut() {
            let node = visit.node;
            let Some(&to) = self.links[node].get(visit.followed) else {
                way.pop();
                self.leave(node, way.last().map(|above| above.node));
                continue;
            };
            visit.followed += 1;
            match self.numbers[to] {
                None => way.push(self.meet(to)),
                Some(number) if self.is_open[to] => {
                    self.lowest[node] = self.lowest[node].min(number);
                }
                Some(_) => {}
            }
        }
    }

    fn leave(&mut self, node: usize, above: Option<usize>) {
        if let Some(above) = above {
            self.lowest[above] = self.lowest[above].min(self.lowest[node]);
        }
        if Some(self.lowest[node]) != self.numbers[node] {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.open.pop() {
            self.is_open[member] = false;
            component.push(member);
            if member == node {
                break;
            }
        }
        self.found.push(component);
    }
}
