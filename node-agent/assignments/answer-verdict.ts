import { unionOf } from '../../model/cpu-set.ts';
import type { AnswerVerdict } from './pod-resources-source.ts';
import type { AssignmentsView, PodResourcesAnswer } from './view.ts';

/**
 * When to query the kubelet again. Its answers come from the same state as its checkpoint: once the two agree, neither
 * changes without the other, and an idle kubelet gets no queries.
 */
export function verdictOn(answer: PodResourcesAnswer | undefined, view: AssignmentsView): AnswerVerdict {
  if (view.problems.length > 0) return answer?.allocatable.isEmpty === false ? 'later' : 'soon';
  const held = unionOf(view.assignments.map(({ cpus }) => cpus));
  const agree = answer?.listed.every(({ cpus }) => cpus.isSubsetOf(held)) === true;
  return agree && view.assignments.every(({ name }) => name !== undefined) ? 'done' : 'later';
}
