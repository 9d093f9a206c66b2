import { WEBHOOK } from '../../../model/names.ts';
import type { Facts } from '../facts/facts.ts';
import { APPLY, type AreaReport, count, fix, inSystem } from './finding.ts';
import { createNotebook } from './notebook.ts';
import { checkVersions } from './versions.ts';

/** Whether all parts are installed, in compatible versions. */
export function checkInstalled(facts: Facts): AreaReport {
  const { topologies, mutating, validating, nodes } = facts;
  const notes = createNotebook('installed');
  if (topologies.missing === 'absent') {
    notes.error(
      'the cluster has no NodeTopology resource',
      'agents cannot report without the definition, and every node counts as unknown',
      APPLY,
      { cause: 'not-installed' },
    );
  } else {
    const found = notes.value(topologies, 'NodeTopologies');
    if (found?.length === 0) {
      notes.error(
        'no node reports its topology',
        'the extender cannot predict any kubelet',
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
          ? 'launchers are not padded, and full-pcpus-only nodes reject them'
          : 'users get no warning when they create a VM, and nothing checks launchers that other webhooks changed';
      notes.error(`there is no ${kind} ${name}`, why, APPLY, { cause: 'not-installed' });
    }
  }
  checkVersions(notes, facts);
  return notes.report;
}
