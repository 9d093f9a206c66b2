import { plumbline } from '../../../diagnosis/remedies.ts';
import { countText } from '../../../model/amounts.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaReport, createAreaRecorder, fix } from './finding.ts';

/** VMs that lost more than 1 % of their dedicated CPUs for ten minutes. */
export function checkInterference({ topologies }: DoctorFacts): AreaReport {
  const recorder = createAreaRecorder('interference');
  const reports = recorder.value(topologies, 'NodeTopologies') ?? [];
  for (const { metadata, status } of reports) {
    const disturbed = status?.interference ?? [];
    if (disturbed.length === 0) continue;
    const names = disturbed.map(({ namespace, podName, percent }) => `${namespace}/${podName} (${percent} %)`);
    recorder.warning(
      `${metadata.name}: interrupts and other work take CPU time from ${someNames(names)}`,
      'the VM’s response times vary',
      fix(
        'see which interrupts they are, and what can be moved',
        plumbline('interference', metadata.name ?? '', '--plan'),
      ),
      { objects: disturbed.map(({ namespace, podName }) => `pod/${namespace}/${podName}`) },
    );
  }
  const measured = reports.filter(({ status }) => status !== undefined).length;
  if (measured > 0)
    recorder.checked(`no VM on ${countText(measured, 'node')} lost more than 1 % of its CPUs for ten minutes`);
  return recorder.report;
}
