import { WEBHOOK } from '../../../model/names.ts';
import type { Facts } from '../facts/facts.ts';
import { type AreaReport, count } from './finding.ts';
import { APPLY, fix, inSystem } from './fix.ts';
import { createNotebook } from './notebook.ts';
import { checkVersions } from './versions.ts';

/** Whether the parts are there at all, and of versions that work together. */
export function checkInstalled(facts: Facts): AreaReport {
  const { topologies, mutating, validating, nodes } = facts;
  const notes = createNotebook('installed');
  if (topologies.missing === 'absent') {
    notes.error(
      'the cluster knows no NodeTopology',
      'without the definition no agent can report, and every node counts as unknown',
      APPLY,
      { cause: 'not-installed' },
    );
  } else {
    const found = notes.value(topologies, 'NodeTopologies');
    if (found?.length === 0) {
      notes.error(
        'no node reports its topology',
        'the extender can predict nothing',
        fix('run the agents', inSystem('rollout', 'status', 'daemonset/plumbline-node-agent', '--timeout=1s')),
      );
    } else if (found) notes.seen(`${count(found.length, 'report')} of ${count(nodes.length, 'node')}`);
  }
  for (const [read, kind, name] of [
    [mutating, 'MutatingWebhookConfiguration', WEBHOOK],
    [validating, 'ValidatingWebhookConfiguration', WEBHOOK],
  ] as const) {
    const all = notes.value(read, `${kind}s`);
    if (all === undefined) continue;
    if (all.some(({ metadata }) => metadata.name === name)) notes.seen(`${kind} ${name}`);
    else {
      const why =
        kind[0] === 'M'
          ? 'launchers are created unpadded, and full-pcpus-only nodes reject them'
          : 'users are warned of nothing when they create a VM, and launchers that others changed are not caught';
      notes.error(`there is no ${kind} ${name}`, why, APPLY, { cause: 'not-installed' });
    }
  }
  checkVersions(notes, facts);
  return notes.report;
}
