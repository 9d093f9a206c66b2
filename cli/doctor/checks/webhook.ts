import { FINAL_WEBHOOK, LAUNCHER_WEBHOOK, NAMESPACE } from '../../../model/names.ts';
import { kubectl } from '../../../model/vm-state/remedy.ts';
import type { Facts } from '../facts/facts.ts';
import type { WebhookConfiguration } from '../facts/objects.ts';
import { checkAlignCpus } from './align-cpus.ts';
import { type AreaReport, count, some } from './finding.ts';
import { APPLY, fix, inSystem } from './fix.ts';
import { createNotebook, type Notebook } from './notebook.ts';

const OURS = 'plumbline-webhook';
type Webhook = WebhookConfiguration['webhooks'][number];

/** Whether the API server can call the webhook, and nobody spoils afterwards what it did. */
export function checkWebhook(facts: Facts): AreaReport {
  const { mutating, validating, endpoints } = facts;
  const notes = createNotebook('webhook');
  const mutators = notes.value(mutating, 'MutatingWebhookConfigurations') ?? [];
  const validators = notes.value(validating, 'ValidatingWebhookConfigurations') ?? [];
  const own = mutators.find(({ metadata }) => metadata.name === OURS);
  const launcher = own?.webhooks.find(({ name }) => name === LAUNCHER_WEBHOOK);
  for (const { webhooks } of [...mutators, ...validators].filter(isOurs)) {
    for (const webhook of webhooks) checkOne(notes, webhook);
  }
  if (own && launcher) checkOrder(notes, mutators, launcher, validators);
  const slices = notes.value(endpoints, `EndpointSlices of ${NAMESPACE}`);
  const serving = slices?.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === OURS) ?? [];
  const ready = serving.flatMap((slice) => slice.endpoints).filter(({ conditions }) => conditions?.ready !== false);
  if (own && serving.length > 0 && ready.length === 0) {
    notes.error(
      `no replica of ${OURS} is ready`,
      'launchers cannot be created: the API server gets no answer',
      fix('see why', inSystem('get', 'pods'), inSystem('logs', `deploy/${OURS}`)),
      { cause: 'webhook-away' },
    );
  } else if (ready.length > 0) notes.seen(`${count(ready.length, 'replica')} ready`);
  checkAlignCpus(notes, facts);
  return notes.report;
}

const isOurs = ({ metadata }: WebhookConfiguration) => metadata.name?.startsWith('plumbline-') === true;

function checkOne(notes: Notebook, { name, clientConfig, failurePolicy }: Webhook): void {
  if (!clientConfig.caBundle) {
    notes.error(
      `webhook ${name} has no CA bundle`,
      'the API server cannot check the webhook’s certificate, so every call fails',
      fix('see whether cert-manager runs, with its cainjector', kubectl('-n', 'cert-manager', 'get', 'pods')),
      { cause: 'certificate' },
    );
  }
  if (name === LAUNCHER_WEBHOOK && failurePolicy === 'Ignore') {
    notes.warning(
      `webhook ${name} has failurePolicy Ignore`,
      'while it is away launchers are created unpadded; then they wait, as no full-pcpus-only node may take them',
      'set failurePolicy: Fail, as shipped: KubeVirt tries again by itself',
    );
  }
}

/** Configurations are called in the order of their names; a later one may add a sidecar that costs the pod its CPUs. */
function checkOrder(
  notes: Notebook,
  mutators: readonly WebhookConfiguration[],
  launcher: Webhook,
  validators: readonly WebhookConfiguration[],
): void {
  const later = mutators.filter(
    (one) => !isOurs(one) && (one.metadata.name ?? '') > OURS && one.webhooks.some(seesNewPods),
  );
  if (later.length === 0) {
    notes.seen('no other webhook changes pods after it');
    return;
  }
  const names = later.map(({ metadata }) => metadata.name ?? '');
  const caught = validators.some(({ webhooks }) => webhooks.some(({ name }) => name === FINAL_WEBHOOK));
  if (launcher.reinvocationPolicy !== 'IfNeeded') {
    notes.warning(
      `${some(names)} change pods after ${OURS}, which is not called again`,
      'a container that they add may cost a launcher its CPUs of its own, or its whole cores',
      'set reinvocationPolicy: IfNeeded on launcher.plumbline.dev, as shipped',
    );
  } else if (!caught) {
    notes.warning(
      `${some(names)} change pods after ${OURS}, and final.plumbline.dev is missing`,
      'what they spoil is found only by the kubelet',
      APPLY,
    );
  } else notes.seen(`${some(names)} change pods later; the outcome is checked`);
}

function seesNewPods({ rules }: Webhook): boolean {
  return (rules ?? []).some(
    ({ resources, operations }) =>
      (resources ?? []).some((one) => one === 'pods' || one === '*' || one === '*/*') &&
      (operations ?? []).some((one) => one === 'CREATE' || one === '*'),
  );
}
