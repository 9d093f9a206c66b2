import { SCHEDULER, SCHEDULER_WEBHOOK, WEBHOOK } from '../../../model/names.ts';
import { plumbline } from '../../../model/vm-state/remedy.ts';
import type { ExplainedPod } from '../../explain/objects.ts';
import type { Facts, Way } from '../facts/facts.ts';
import { APPLY, count, fix, type Notebook, some } from './finding.ts';

const CONFIGURATION = WEBHOOK;
const DEFAULT_SCHEDULER = 'default-scheduler';

/** Whether the webhook assigns launchers to a scheduler that exists and calls the extender. */
export function checkRouting(notes: Notebook, { mutating, launchers }: Facts, way: Exclude<Way, 'unknown'>): void {
  const own = notes
    .value(mutating, 'MutatingWebhookConfigurations')
    ?.find(({ metadata }) => metadata.name === CONFIGURATION);
  const routes = own?.webhooks.some(({ name }) => name === SCHEDULER_WEBHOOK);
  const pending = (launchers.value ?? []).filter(
    ({ spec, status }) => !spec.nodeName && (status?.phase ?? 'Pending') === 'Pending',
  );
  const naming = (wanted: (scheduler: string) => boolean) =>
    pending.filter(({ spec }) => wanted(spec.schedulerName || DEFAULT_SCHEDULER));
  if (way === 'sidecar') {
    checkRouted(notes, routes, naming);
    return;
  }
  const stranded = naming((scheduler) => scheduler === SCHEDULER);
  if (stranded.length > 0) {
    notes.error(
      `${count(stranded.length, 'pending launcher')} for ${SCHEDULER}, which is not installed: ${some(named(stranded))}`,
      'they wait for a scheduler that is not running',
      'set --scheduler-name "" on the webhook (manifests/scheduler/loopback), then restart these VMs',
      { objects: objects(stranded) },
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
  naming: (wanted: (scheduler: string) => boolean) => readonly ExplainedPod[],
): void {
  if (routes === false) {
    notes.error(
      `the MutatingWebhookConfiguration ${CONFIGURATION} has no webhook ${SCHEDULER_WEBHOOK}`,
      'the default scheduler places launchers without calling the extender',
      APPLY,
      { cause: 'not-routed' },
    );
  } else if (routes) notes.seen(`the webhook assigns launchers to ${SCHEDULER}`);
  const missed = naming((scheduler) => scheduler === DEFAULT_SCHEDULER);
  if (missed.length > 0) {
    notes.warning(
      `${count(missed.length, 'pending launcher')} for ${DEFAULT_SCHEDULER}: ${some(named(missed))}`,
      'that scheduler does not call the extender, so it may place them on a node that cannot run them',
      fix('restart these VMs once the webhook works', plumbline('doctor', 'webhook')),
      { objects: objects(missed), cause: 'not-routed' },
    );
  }
  const others = naming((scheduler) => scheduler !== DEFAULT_SCHEDULER && scheduler !== SCHEDULER);
  if (others.length > 0) {
    const names = [...new Set(others.map(({ spec }) => spec.schedulerName ?? ''))];
    notes.seen(`${count(others.length, 'pending launcher')} for another scheduler (${some(names)})`);
  }
}

const named = (pods: readonly ExplainedPod[]) => pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
const objects = (pods: readonly ExplainedPod[]) => named(pods).map((name) => `pod/${name}`);
