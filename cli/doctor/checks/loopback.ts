import type { Facts } from '../facts/facts.ts';
import { fix, some } from './finding.ts';
import type { Notebook } from './notebook.ts';

const UNCHECKED = 'pods are placed without a check of DPUs, networks and CPUs';
const CONFIGURE = 'start kube-scheduler with the configuration in manifests/scheduler/loopback';

/** The extender as a static pod next to each kube-scheduler of the cluster. */
export function checkLoopback(notes: Notebook, facts: Facts): void {
  checkExtenders(notes, facts);
  checkConfigured(notes, facts);
}

/** Each kube-scheduler may become the leader, and then calls the extender of its own host. */
function checkExtenders(notes: Notebook, { schedulers, extenderPods, extender }: Facts): void {
  const ready = new Set(
    (extenderPods.value ?? []).filter(({ status }) => isReady(status)).map(({ spec }) => spec.nodeName),
  );
  const pods = notes.value(schedulers, 'pods of kube-scheduler') ?? [];
  const alone = pods.filter(({ spec }) => !ready.has(spec.nodeName)).map(({ spec }) => spec.nodeName ?? '?');
  if (alone.length > 0) {
    notes.error(
      `no extender is ready next to kube-scheduler on ${some(alone)}`,
      `while that kube-scheduler leads, ${UNCHECKED}`,
      fix('find out why', {
        program: 'kubectl',
        args: [
          '-n',
          'kube-system',
          'get',
          'pods',
          '-o',
          'wide',
          '-l',
          'app.kubernetes.io/name=plumbline-scheduler-plugin',
        ],
      }),
    );
  } else notes.seen('an extender is ready next to each kube-scheduler');
  if (extender.missing === 'silent') {
    notes.error(`the leader’s extender does not answer: ${extender.why}`, UNCHECKED, 'read the log of that pod');
  } else if (extender.missing === 'forbidden') {
    notes.value(extender, 'the extender’s answer (leases and pods/portforward in kube-system)');
  } else if (extender.missing === undefined) notes.seen('the extender answers');
}

/**
 * No object contains kube-scheduler's configuration, so this check uses its command line and the calls to the extender.
 * The httpTimeout is not visible.
 */
function checkConfigured(notes: Notebook, { schedulers, extender, launchers }: Facts): void {
  const bare = (schedulers.value ?? []).filter(({ spec }) => {
    const words = spec.containers.flatMap(({ command, args }) => [...(command ?? []), ...(args ?? [])]);
    return !words.some((word) => word === '--config' || word.startsWith('--config='));
  });
  if (bare.length > 0) {
    const what = `${some(bare.map(({ metadata }) => metadata.name ?? ''))} runs without --config`;
    notes.error(what, 'it does not call the extender, so it places VMs by CPU count alone', CONFIGURE);
    return;
  }
  if (extender.missing !== undefined) return;
  const { active, decisions } = extender.value;
  const bound = (launchers.value ?? []).filter(({ spec }) => spec.nodeName);
  if (decisions.length > 0) notes.seen('kube-scheduler calls the extender');
  else if (active && bound.length > 0) {
    notes.warning(
      'kube-scheduler has not called the extender since the extender became active',
      'if a VM started since then, kube-scheduler does not call the extender',
      CONFIGURE,
    );
  }
}

type Status = NonNullable<Facts['extenderPods']['value']>[number]['status'];

const isReady = (status: Status) =>
  (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True');
