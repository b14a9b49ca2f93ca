//! A conversation as an export holds it: a tree of messages. Every format is read into this form.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::{Extra, Message};

/// What could not be imported unchanged: the count of each kind.
pub(crate) type Skipped = BTreeMap<String, u64>;

/// A conversation of an export.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// Its id in the export.
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    /// What else is known of it.
    pub(crate) rest: Extra,
    /// Its nodes, in the order of the export.
    pub(crate) nodes: Vec<Node>,
    /// The node at which the shown branch ends; without one, the newest branch is shown.
    pub(crate) shown: Option<String>,
    pub(crate) skipped: Skipped,
    /// Whether it is the rest of a file that holds no conversation: it is counted, and not stored.
    pub(crate) is_hollow: bool,
}

/// A place in the tree: its messages, and the place that it follows.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    /// One message, several, or none.
    pub(crate) messages: Vec<Message>,
}

/// A conversation that cannot be imported.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) why: String,
}

/// What one value of an export yields.
pub(crate) type Taken = Result<Foreign, Broken>;

/// A branch: a path through the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The branch from which it forks, and after how many of that branch's nodes, shared ones included.
    pub(crate) from: Option<(usize, usize)>,
    /// Its own nodes, as positions in [`Foreign::nodes`].
    pub(crate) nodes: Vec<usize>,
}

impl Foreign {
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Adds a node after the last one. Without an id its place is its id.
    pub(crate) fn push(&mut self, id: Option<String>, messages: Vec<Message>) {
        let parent = self.nodes.last().map(|node| node.id.clone());
        let id = id.unwrap_or_else(|| self.nodes.len().to_string());
        self.nodes.push(Node { id, parent, messages });
    }

    /// The same nodes, each after the one before it, whatever their ids are: for formats that are a list.
    pub(crate) fn in_a_row(mut self) -> Self {
        self.tell_nodes_apart();
        let mut last = None;
        for node in &mut self.nodes {
            node.parent = last.replace(node.id.clone());
        }
        self
    }

    /// Counts something that is not imported.
    pub(crate) fn skip(&mut self, kind: impl Into<String>) {
        *self.skipped.entry(kind.into()).or_default() += 1;
    }

    /// The branches: the shown one first, each other one after the branch from which it forks. Every node is in one of
    /// them.
    ///
    /// A missing parent counts as none, and a circle of parents is broken at the first node of the export: both are
    /// counted.
    pub(crate) fn branches(&mut self) -> Vec<Branch> {
        let tree = Tree::of(self);
        let shown = self.shown.as_ref().and_then(|id| tree.places.get(id.as_str())).copied();
        let (branches, mended) = (tree.branches(shown), tree.mended);
        for (kind, count) in mended {
            *self.skipped.entry(kind.to_owned()).or_default() += count;
        }
        self.tell_nodes_apart();
        branches
    }

    /// Gives each node an id of its own, by which its messages and its branch are found again in the store. Parents are
    /// named by the ids of the export: this comes after the tree is known.
    fn tell_nodes_apart(&mut self) {
        let ids: HashSet<String> = self.nodes.iter().map(|node| node.id.clone()).collect();
        if ids.len() == self.nodes.len() {
            return;
        }
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for node in &mut self.nodes {
            let number = numbers.entry(node.id.clone()).or_default();
            *number += 1;
            let mut id = node.id.clone();
            while *number > 1 {
                id = format!("{}~{number}", node.id);
                if !ids.contains(&id) {
                    break;
                }
                *number += 1;
            }
            node.id = id;
        }
    }
}

impl Broken {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { id: None, title: None, why: why.into() }
    }
}

/// The tree, with every node reachable.
struct Tree<'a> {
    places: HashMap<&'a str, usize>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    mended: Vec<(&'static str, u64)>,
}

impl<'a> Tree<'a> {
    fn of(foreign: &'a Foreign) -> Self {
        let nodes = &foreign.nodes;
        let mut places = HashMap::new();
        for (place, node) in nodes.iter().enumerate() {
            places.entry(node.id.as_str()).or_insert(place);
        }
        let (mut missing, mut circles) = (0, 0);
        let mut parents = Vec::with_capacity(nodes.len());
        for node in nodes {
            let parent = node.parent.as_deref().map(|id| places.get(id).copied());
            missing += u64::from(parent == Some(None));
            parents.push(parent.flatten());
        }
        // 0: not seen; otherwise the number of the walk that saw it. A walk that meets itself is in a circle.
        let mut seen = vec![0_usize; nodes.len()];
        for start in 0..nodes.len() {
            let mut at = Some(start);
            while let Some(place) = at {
                match seen.get(place).copied() {
                    Some(0) => {}
                    Some(walk) if walk == start + 1 => {
                        circles += 1;
                        if let Some(parent) = parents.get_mut(place) {
                            *parent = None;
                        }
                        break;
                    }
                    _ => break,
                }
                if let Some(seen) = seen.get_mut(place) {
                    *seen = start + 1;
                }
                at = parents.get(place).copied().flatten();
            }
        }
        let mut children = vec![Vec::new(); nodes.len()];
        let mut roots = Vec::new();
        for (place, parent) in parents.iter().enumerate() {
            match parent.and_then(|parent| children.get_mut(parent)) {
                Some(children) => children.push(place),
                None => roots.push(place),
            }
        }
        let mended = [("missing_parent", missing), ("parents_in_a_circle", circles)];
        Self { places, parents, children, roots, mended: mended.into_iter().filter(|(_, count)| *count > 0).collect() }
    }

    fn branches(&self, shown: Option<usize>) -> Vec<Branch> {
        // The shown path upwards, so that its way down is known.
        let mut on_shown = HashSet::new();
        let mut at = shown;
        while let Some(place) = at {
            on_shown.insert(place);
            at = self.parents.get(place).copied().flatten();
        }
        let next = |choices: &[usize]| {
            let known = choices.iter().find(|place| on_shown.contains(place));
            // Otherwise the newest.
            known.or(choices.last()).copied()
        };
        let mut branches: Vec<Branch> = Vec::new();
        // Where the remaining branches begin: the branch from which they fork, and their first node.
        let mut waiting: Vec<(Option<(usize, usize)>, usize)> = Vec::new();
        let Some(first) = next(&self.roots) else { return branches };
        let others = self.roots.iter().filter(|root| **root != first).map(|root| (Some((0, 0)), *root));
        waiting.extend(others.rev());
        waiting.push((None, first));
        while let Some((from, first)) = waiting.pop() {
            let number = branches.len();
            let shared = from.map_or(0, |(_, shared)| shared);
            let mut nodes = vec![first];
            let mut leaving = Vec::new();
            let mut at = first;
            loop {
                let children = self.children.get(at).map(Vec::as_slice).unwrap_or_default();
                // Nodes after the end of the shown path fork from it.
                let child = if Some(at) == shown { None } else { next(children) };
                let others = children.iter().filter(|other| Some(**other) != child);
                leaving.extend(others.map(|other| (Some((number, shared + nodes.len())), *other)));
                let Some(child) = child else { break };
                nodes.push(child);
                at = child;
            }
            waiting.extend(leaving.into_iter().rev());
            branches.push(Branch { from, nodes });
        }
        branches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` is a root; `b<a` follows `a`.
    fn foreign(nodes: &str, shown: Option<&str>) -> Foreign {
        let mut foreign = Foreign { shown: shown.map(str::to_owned), ..Foreign::new("x") };
        for node in nodes.split_whitespace() {
            let (id, parent) = node.split_once('<').map_or((node, None), |(id, parent)| (id, Some(parent)));
            foreign.nodes.push(Node { id: id.to_owned(), parent: parent.map(str::to_owned), messages: vec![] });
        }
        foreign
    }

    fn shown(nodes: &str, leaf: Option<&str>) -> (Vec<String>, Vec<(String, u64)>) {
        let mut foreign = foreign(nodes, leaf);
        let branches = foreign.branches();
        let name = |place: &usize| foreign.nodes[*place].id.clone();
        let shown = branches.iter().map(|branch| {
            let from = branch.from.map_or_else(String::new, |(branch, after)| format!("{branch}+{after}:"));
            format!("{from}{}", branch.nodes.iter().map(name).collect::<String>())
        });
        (shown.collect(), foreign.skipped.into_iter().collect())
    }

    /// A case of the table below.
    type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a [(&'a str, u64)]);

    #[test]
    fn trees_become_branches() {
        let table: &[Case<'_>] = &[
            ("", None, &[], &[]),
            ("a b<a c<b", Some("c"), &["abc"], &[]),
            ("a b<a c<a d<c", Some("b"), &["ab", "0+1:cd"], &[]),
            ("a b<a c<a d<c", None, &["acd", "0+1:b"], &[]),
            // A shown node with more nodes after it.
            ("a b<a c<a d<b e<b", Some("b"), &["ab", "0+1:c", "0+2:d", "0+2:e"], &[]),
            ("a b<a c<b d<b e<c f<c", Some("d"), &["abd", "0+2:cf", "1+3:e"], &[]),
            ("a b", Some("a"), &["a", "0+0:b"], &[]),
            ("a b<gone", None, &["b", "0+0:a"], &[("missing_parent", 1)]),
            ("a<c b<a c<b", None, &["abc"], &[("parents_in_a_circle", 1)]),
            ("a<a", None, &["a"], &[("parents_in_a_circle", 1)]),
        ];
        for (nodes, leaf, branches, mended) in table {
            let mended: Vec<_> = mended.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
            assert_eq!(shown(nodes, *leaf), (branches.iter().map(|b| (*b).to_owned()).collect(), mended), "{nodes}");
        }
    }

    #[test]
    fn a_million_children_take_no_longer_than_they_have_to() {
        let mut foreign = Foreign::new("x");
        foreign.nodes = (0..1_000_000)
            .map(|at: u32| Node { id: at.to_string(), parent: (at > 0).then(|| "0".to_owned()), messages: vec![] })
            .collect();
        let branches = foreign.branches();
        assert_eq!(branches.len(), 999_999);
        assert_eq!(branches.iter().map(|branch| branch.nodes.len()).sum::<usize>(), 1_000_000);
    }
}
