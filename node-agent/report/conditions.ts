import type { NodeTopologyStatus } from '../../kube/node-topology.ts';

export type Condition = NonNullable<NodeTopologyStatus['conditions']>[number];

/** A condition as its duty reports it, without the time. */
export type ConditionState = Omit<Condition, 'lastTransitionTime'>;

/** A condition that is `True` with reason `AsExpected` without problems, and otherwise `False` with the reason. */
export function conditionOf(type: string, reason: string, problems: readonly string[]): ConditionState {
  return problems.length === 0
    ? { type, status: 'True', reason: 'AsExpected', message: '' }
    : { type, status: 'False', reason, message: problems.join('; ') };
}

/**
 * Adds transition times: a condition keeps its time while its status stays the same.
 * @param now RFC 3339
 */
export function withTimes(states: readonly ConditionState[], before: readonly Condition[], now: string): Condition[] {
  return states.map((state) => {
    const same = before.find(({ type, status }) => type === state.type && status === state.status);
    return { ...state, lastTransitionTime: same?.lastTransitionTime ?? now };
  });
}
