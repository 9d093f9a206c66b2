import { type Command, kubectl, pipe } from '../../../diagnosis/remedy.ts';
import { NAMESPACE } from '../../../model/names.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { HELM_ANNOTATION, RELEASE_ANNOTATION } from '../facts/objects.ts';
import { type Fix, fix } from './finding.ts';

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
export function defineAgain(facts: DoctorFacts): Fix {
  const again = applyAgain(facts);
  if (!again.commands.some(({ program }) => program === 'helm')) return again;
  return fix('apply the definition, in a checkout of its version', kubectl(...APPLY, 'manifests/chart/plumbline/crds'));
}
