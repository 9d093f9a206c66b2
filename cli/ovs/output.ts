import type { OvsStatus } from '../../model/agent-status.ts';
import { isInOrder, isInPlace } from '../agent/ovs-status.ts';
import { numbersOf } from '../support/output.ts';

/** Output of `plumbline ovs status -o json`: docs/schemas/ovs-status.json. */
export function ovsStatusData(status: OvsStatus) {
  const { enabled, enablerFile, wanted, why, problems, sources, processes } = status;
  return {
    enabled,
    enablerFile,
    inOrder: isInOrder(status),
    wanted: wanted === null ? null : numbersOf(wanted),
    why,
    problems,
    sources,
    processes: processes.map(({ name, role, pid, threads }) => ({
      name,
      role,
      pid,
      threads: threads.map((thread) => ({
        tid: thread.tid,
        name: thread.name,
        allowed: numbersOf(thread.allowed),
        wanted: thread.wanted === null ? null : numbersOf(thread.wanted),
        inPlace: isInPlace(thread),
        note: thread.note,
      })),
    })),
  };
}
