import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { verdictOn } from '../../../node-agent/assignments/assignments.ts';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';

const set = (text: string) => CpuSet.parse(text);
const listing = (listed: readonly string[], allocatable = '0-7') => ({
  devices: [],
  claimNames: new Map(),
  memory: { cells: new Map() },
  allocatable: set(allocatable),
  listed: listed.map((cpus) => ({ namespace: 'n', podName: 'p', container: 'c', cpus: set(cpus), devices: [] })),
});
/** @param holds the CPUs of each assignment; those that end with `?` have no pod name yet */
const view = (holds: readonly string[], problems: readonly string[] = []) => ({
  ...UNKNOWN_VIEW,
  problems,
  assignments: holds.map((text, i) => ({
    podUID: `${i}`,
    container: 'c',
    cpus: set(text.replace('?', '')),
    name: text.endsWith('?') ? undefined : { namespace: 'n', podName: 'p' },
  })),
});

describe('the next query of the kubelet', () => {
  for (const [what, answer, seen, expected] of [
    ['comes soon without an answer', undefined, view([], ['no answer']), 'soon'],
    ['comes soon before the CPU manager has started', listing([], ''), view([], ['no CPUs']), 'soon'],
    ['comes later if another source has a problem', listing([]), view([], ['torn file']), 'later'],
    ['comes later if every container has its CPUs and its name', listing(['2-3']), view(['2-3', '4-5']), 'later'],
    ['comes later while no owner has a name', listing([]), view(['3?']), 'later'],
  ] as const) {
    it(what, () => assert.equal(verdictOn(answer, seen), expected));
  }
});
