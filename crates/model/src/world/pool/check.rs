//! Checks that all indexes of a pool equal freshly built ones.

use super::Pool;
use crate::world::order::NOWHERE;

impl Pool {
    pub(in crate::world) fn check(&self) {
        if self.is_stale {
            return;
        }
        let mut fresh = self.clone();
        fresh.is_stale = true;
        fresh.rebuild();
        for group in 0..self.groups.len() {
            self.check_group(&fresh, group);
        }
        let mut late = self.clone();
        while let Some(index) = late.preemption_indexes.last() {
            let priority = index.priority;
            let tree = late.catch_up(late.preemption_indexes.len() - 1);
            assert_eq!(tree, self.build_preemption_tree(priority), "preemption tree of {priority}");
        }
    }

    fn check_group(&self, fresh: &Pool, group: usize) {
        let (mine, new) = (&self.groups[group], &fresh.groups[group]);
        let slots = |order: &crate::world::order::Order| -> Vec<usize> {
            order.iter().map(|(_, slot)| slot).collect()
        };
        assert_eq!(slots(&mine.order), slots(&new.order), "the order of nodes");
        let by_loss = |group: &super::Group| -> Vec<_> {
            let all = group.by_loss.iter();
            all.map(|&(priority, started, p)| (priority, started, group.order.get(p))).collect()
        };
        assert_eq!(by_loss(mine), by_loss(new), "cheapest victims");
        for position in 0..mine.order.positions() {
            let slot = mine.order.get(position);
            let at = slot.map_or(NOWHERE, |s| self.nodes[s].positions[usize::from(group > 0)]);
            assert!(slot.is_none() || at == position, "position of a node");
            let rows = self.clone().unheld_rows(slot);
            for (tree, row) in [&mine.open, &mine.future].into_iter().zip(&rows) {
                assert!(tree.is_empty() || tree.leaf(position) == row, "leaf of a tree");
            }
        }
    }
}
