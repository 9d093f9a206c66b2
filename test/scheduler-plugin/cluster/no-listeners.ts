import type { StateListeners } from '../../../scheduler-plugin/cluster/cluster-state.ts';

const ignored = () => undefined;

/** For a ClusterState whose changes need no reaction. */
export const NO_LISTENERS: StateListeners = {
  improved: ignored,
  bound: ignored,
  settled: ignored,
  waiting: ignored,
  starting: ignored,
  rejected: ignored,
  reservationEnded: ignored,
  nodeFacts: ignored,
  quarantined: ignored,
};
