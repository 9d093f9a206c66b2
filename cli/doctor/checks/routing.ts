import type { ExplainedPod } from '../../../diagnosis/objects.ts';
import { plumbline } from '../../../diagnosis/remedy.ts';
import { countText } from '../../../model/amounts.ts';
import { SCHEDULER, SCHEDULER_WEBHOOK, WEBHOOK } from '../../../model/names.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts, Way } from '../facts/facts.ts';
import { APPLY, fix, type Notebook } from './finding.ts';
import { podNames, podObjects } from './pods.ts';

const DEFAULT_SCHEDULER = 'default-scheduler';

/** Whether the webhook assigns launchers to a scheduler that exists and calls the extender. */
export function checkRouting(
  notes: Notebook,
  { mutating, launchers }: DoctorFacts,
  way: Exclude<Way, 'unknown'>,
): void {
  const own = notes.value(mutating, 'MutatingWebhookConfigurations')?.find(({ metadata }) => metadata.name === WEBHOOK);
  const routes = own?.webhooks.some(({ name }) => name === SCHEDULER_WEBHOOK);
  const pending = (launchers.value ?? []).filter(
    ({ spec, status }) => !spec.nodeName && (status?.phase ?? 'Pending') === 'Pending',
  );
  const naming = (isMeant: (scheduler: string) => boolean) =>
    pending.filter(({ spec }) => isMeant(spec.schedulerName || DEFAULT_SCHEDULER));
  if (way === 'sidecar') {
    checkRouted(notes, routes, naming);
    return;
  }
  const stranded = naming((scheduler) => scheduler === SCHEDULER);
  if (stranded.length > 0) {
    notes.error(
      `${countText(stranded.length, 'pending launcher')} for ${SCHEDULER}, which is not installed: ${someNames(podNames(stranded))}`,
      'they wait for a scheduler that is not running',
      'set --scheduler-name "" on the webhook (manifests/scheduler/loopback), then restart these VMs',
      { objects: podObjects(stranded) },
    );
  }
  if (routes === true) {
    notes.error(
      `the webhook ${SCHEDULER_WEBHOOK} assigns launchers to ${SCHEDULER}, which is not installed`,
      'new VMs wait for a scheduler that is not running',
      fix(
        `${APPLY.text}, or use the component manifests/scheduler/loopback, which removes this webhook`,
        ...APPLY.commands,
      ),
    );
  }
}

function checkRouted(
  notes: Notebook,
  routes: boolean | undefined,
  naming: (isMeant: (scheduler: string) => boolean) => readonly ExplainedPod[],
): void {
  if (routes === false) {
    notes.error(
      `the MutatingWebhookConfiguration ${WEBHOOK} has no webhook ${SCHEDULER_WEBHOOK}`,
      'the default scheduler places launchers without calling the extender',
      APPLY,
      { cause: 'not-routed' },
    );
  } else if (routes) notes.seen(`the webhook assigns launchers to ${SCHEDULER}`);
  const missed = naming((scheduler) => scheduler === DEFAULT_SCHEDULER);
  if (missed.length > 0) {
    notes.warning(
      `${countText(missed.length, 'pending launcher')} for ${DEFAULT_SCHEDULER}: ${someNames(podNames(missed))}`,
      'that scheduler does not call the extender, so it may place them on a node that cannot run them',
      fix('restart these VMs once the webhook works', plumbline('doctor', 'webhook')),
      { objects: podObjects(missed), cause: 'not-routed' },
    );
  }
  const others = naming((scheduler) => scheduler !== DEFAULT_SCHEDULER && scheduler !== SCHEDULER);
  if (others.length > 0) {
    const names = [...new Set(others.map(({ spec }) => spec.schedulerName ?? ''))];
    notes.seen(`${countText(others.length, 'pending launcher')} for another scheduler (${someNames(names)})`);
  }
}
