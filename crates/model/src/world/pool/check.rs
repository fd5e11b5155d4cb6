//! Are all indexes of a pool what they would be if they were made now?

use super::Pool;
use crate::world::order::NOWHERE;

impl Pool {
    pub(in crate::world) fn check(&self) {
        if self.is_stale {
            return;
        }
        let mut fresh = self.clone();
        fresh.is_stale = true;
        fresh.settle();
        for group in 0..self.groups.len() {
            self.check_group(&fresh, group);
        }
        let mut late = self.clone();
        while let Some(reach) = late.reach.last() {
            let priority = reach.priority;
            let tree = late.catch_up(late.reach.len() - 1);
            assert_eq!(tree, self.plant_reach(priority), "reach of {priority}");
        }
    }

    fn check_group(&self, fresh: &Pool, group: usize) {
        let (mine, new) = (&self.groups[group], &fresh.groups[group]);
        let slots = |order: &crate::world::order::Order| -> Vec<usize> {
            order.iter().map(|(_, slot)| slot).collect()
        };
        assert_eq!(slots(&mine.order), slots(&new.order), "the order of nodes");
        let yielding = |group: &super::Group| -> Vec<_> {
            let all = group.yielding.iter();
            all.map(|&(priority, started, p)| (priority, started, group.order.get(p))).collect()
        };
        assert_eq!(yielding(mine), yielding(new), "who would hurt least");
        for position in 0..mine.order.positions() {
            let slot = mine.order.get(position);
            let at = slot.map_or(NOWHERE, |s| self.nodes[s].positions[usize::from(group > 0)]);
            assert!(slot.is_none() || at == position, "a node knows where it is");
            let rows = self.clone().rooms(slot);
            for (tree, row) in [&mine.open, &mine.coming].into_iter().zip(&rows) {
                assert!(tree.is_empty() || tree.leaf(position) == row, "what a tree knows");
            }
        }
    }
}
