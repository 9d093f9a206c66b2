import { type Command, kubectl, pipe } from '../../../diagnosis/remedies.ts';
import { countText } from '../../../model/amounts.ts';
import { NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import { HELM_ANNOTATION, RELEASE_ANNOTATION, type SystemPod } from '../../support/objects.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaRecorder, areaCheck, type Fix, fix, inSystem, isReady } from './finding.ts';

const RELEASE_FORM = /^(\d+\.\d+\.\d+\S*) (1\.\d+) (\S+)$/;
const PUBLISHED = 'ghcr.io/plumbline-dev/plumbline';

const APPLY = ['apply', '--server-side', '-f'] as const;

const helm = (...args: readonly string[]): Command => ({ program: 'helm', args: ['-n', NAMESPACE, ...args] });

/** Applies again exactly what the cluster was installed with, so that nothing else changes. */
export function applyAgain({ namespace, mutating, validating, deployments }: DoctorFacts): Fix {
  if (namespace.missing === 'absent') return fix('install Plumbline (docs/tasks/install.md)');
  const objects = [...(mutating.value ?? []), ...(validating.value ?? []), ...(deployments.value ?? [])];
  const owners = objects.filter(({ metadata }) => metadata.name?.startsWith('plumbline-'));
  const release = owners.map(({ metadata }) => metadata.annotations?.[HELM_ANNOTATION]).find((name) => name != null);
  if (release != null) {
    const text = 'apply what its Helm release contains; what kubectl names as a conflict stays as it is';
    return fix(text, pipe(helm('get', 'manifest', release), kubectl(...APPLY, '-')));
  }
  const annotation = namespace.value?.metadata.annotations?.[RELEASE_ANNOTATION] ?? '';
  const [, version, minor, registry = ''] = RELEASE_FORM.exec(annotation) ?? [];
  if (version === undefined || minor === undefined) {
    return fix('apply its kustomization again, in the folder of that', kubectl('apply', '--server-side', '-k', '.'));
  }
  if (registry === PUBLISHED) {
    const file = `releases/download/v${version}/plumbline-kubernetes-${minor}.yaml`;
    const url = `https://github.com/plumbline-dev/plumbline/${file}`;
    return fix('apply its release manifest again', kubectl(...APPLY, url));
  }
  const print: Command = { program: 'npm', args: ['run', '--silent', 'release:manifest', '--', minor, registry] };
  return fix(`apply its manifest again, in a checkout of v${version}`, pipe(print, kubectl(...APPLY, '-')));
}

/** Helm does not manage the definition after the installation. */
function defineAgain(facts: DoctorFacts): Fix {
  const again = applyAgain(facts);
  if (!again.commands.some(({ program }) => program === 'helm')) return again;
  return fix('apply the definition, in a checkout of its version', kubectl(...APPLY, 'manifests/chart/plumbline/crds'));
}

export const checkInstalled = areaCheck('installed', (recorder, facts: DoctorFacts) => {
  const { topologies, mutating, validating, nodes } = facts;
  if (topologies.missing === 'absent') {
    recorder.error(
      'the cluster has no NodeTopology resource',
      'agents cannot report without the definition, and every node counts as unknown',
      defineAgain(facts),
      { cause: 'not-installed' },
    );
  } else {
    const reports = recorder.value(topologies, 'NodeTopologies');
    if (reports?.length === 0) {
      recorder.error(
        'no node reports its topology',
        'the extender cannot predict any kubelet',
        fix('run the agents', inSystem('rollout', 'status', 'daemonset/plumbline-node-agent', '--timeout=1s')),
      );
    } else if (reports)
      recorder.checked(`${countText(reports.length, 'report')} of ${countText(nodes.length, 'node')}`);
  }
  for (const [read, kind, why] of [
    [mutating, 'MutatingWebhookConfiguration', 'launchers are not padded, and full-pcpus-only nodes reject them'],
    [
      validating,
      'ValidatingWebhookConfiguration',
      'users get no warning when they create a VM, and nothing checks launchers that other webhooks changed',
    ],
  ] as const) {
    const all = recorder.value(read, `${kind}s`);
    if (all?.some(({ metadata }) => metadata.name === WEBHOOK)) recorder.checked(`${kind} ${WEBHOOK}`);
    else if (all) recorder.error(`there is no ${kind} ${WEBHOOK}`, why, applyAgain(facts), { cause: 'not-installed' });
  }
  checkVersions(recorder, facts);
});

const PARTS: Readonly<Record<string, string>> = {
  webhook: 'webhook',
  extender: 'extender',
  'scheduler-plugin': 'extender',
  'node-agent': 'agents',
  console: 'console',
};
const IMAGES = /(?:^|\/)plumbline-(?:webhook|scheduler-plugin|node-agent|console)(?:[:@]|$)/;

interface Running {
  readonly part: string;
  readonly version: string;
  readonly pods: number;
  readonly ready: number;
}

const differ = (running: readonly Running[]): boolean => new Set(running.map(({ version }) => version)).size > 1;

const FINISH: Fix = fix(
  'finish the upgrade, or roll back: check which pods are left, then install one version (docs/tasks/upgrade.md)',
  inSystem('get', 'pods', '-o', 'wide'),
  inSystem('rollout', 'status', 'daemonset/plumbline-node-agent', '--timeout=1s'),
);

const BY_ONE: Fix = fix(
  'upgrade all parts to one version, one minor version at a time (docs/reference/versions.md); check which pods are left',
  inSystem('get', 'pods', '-o', 'wide'),
);

/** One minor version apart is supported (docs/reference/versions.md): it occurs during an upgrade. */
function checkVersions(recorder: AreaRecorder, { systemPods, command }: DoctorFacts): void {
  const pods = recorder.value(systemPods, `pods of ${NAMESPACE}`);
  if (pods === undefined) return;
  const { running, unknown } = runningParts(pods);
  for (const image of unknown) recorder.value({ missing: 'absent' }, `the version in the image ${image}`);
  if (running.length === 0) return;
  const all = [...running, { part: 'command', version: command, pods: 1, ready: 1 }];
  const versions = versionsText(all);
  if (!differ(running) && minorsApart([running[0]!, all.at(-1)!]) === 0) {
    recorder.checked(`versions: ${versions}`);
    return;
  }
  const what = `parts of different versions run: ${versions}`;
  if (minorsApart(all) <= 1) {
    const impact =
      'one minor version apart works during an upgrade: a new feature has no effect until all parts have it';
    recorder.warning(
      what,
      impact,
      differ(running) ? FINISH : fix('install this command in the version that the cluster runs'),
    );
  } else {
    const impact =
      'any two parts may be one minor version apart: beyond that, one may ignore or quarantine what another reports';
    recorder.error(what, impact, BY_ONE);
  }
}

export function runningParts(pods: readonly SystemPod[]) {
  const counts = new Map<string, Running>();
  const unknown = new Set<string>();
  for (const { spec, status } of pods) {
    for (const { name, image } of [...(spec.initContainers ?? []), ...spec.containers]) {
      const part = PARTS[name];
      if (part === undefined || image == null || !IMAGES.test(image)) continue;
      const version = tagOf(image).replace(/^v/, '');
      if (parsed(version) === undefined) unknown.add(image);
      else {
        const key = `${part} ${version}`;
        const { pods: before, ready } = counts.get(key) ?? { pods: 0, ready: 0 };
        counts.set(key, { part, version, pods: before + 1, ready: ready + Number(isReady(status?.conditions)) });
      }
    }
  }
  const order = Object.values(PARTS);
  const running = [...counts.values()].sort(
    (a, b) => order.indexOf(a.part) - order.indexOf(b.part) || a.version.localeCompare(b.version),
  );
  return { running, unknown };
}

/** `agents 0.1.0 (3 pods) and 0.2.0 (1 pod)`, or `webhook 0.1.0`. @param readiness adds `(0 of 1 ready)` */
export function versionsText(all: readonly Running[], readiness = false): string {
  const parts = [...new Set(all.map(({ part }) => part))];
  return parts
    .map((part) => {
      const entriesOfPart = all.filter((one) => one.part === part);
      const versions = entriesOfPart.map(({ version, pods, ready }) => {
        if (readiness && ready < pods) return `${version} (${ready} of ${pods} ready)`;
        return entriesOfPart.length > 1 ? `${version} (${countText(pods, 'pod')})` : version;
      });
      return `${part} ${versions.join(' and ')}`;
    })
    .join(', ');
}

/** Between the oldest and the newest; infinite across a major version, which is never supported. */
function minorsApart(all: readonly Running[]): number {
  const read = all.flatMap(({ version }) => parsed(version) ?? []);
  const minors = read.map(({ minor }) => minor);
  if (new Set(read.map(({ major }) => major)).size > 1) return Number.POSITIVE_INFINITY;
  return Math.max(...minors) - Math.min(...minors);
}

function parsed(version: string): { readonly major: number; readonly minor: number } | undefined {
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})\.\d{1,4}(?:[-+].*)?$/.exec(version) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

export function tagOf(image: string): string {
  return /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? '';
}
