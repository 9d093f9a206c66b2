import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { NAMESPACE, WEBHOOK } from '../../../model/names.ts';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import type { ControlPlane } from '../control-plane-stage.ts';
import { objectsOf } from './rendered-fixture.ts';

const REGISTRY = 'registry.example.com/plumbline';
const MINOR = '1.36';
const COMPONENTS = ['base/node-agent/components/gate', 'components/console', `components/kubernetes-${MINOR}`];

export interface Place {
  readonly plane: ControlPlane;
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface Way {
  readonly name: string;
  install(place: Place): void;
  readonly folder: (place: Place) => string;
  readonly fix: RegExp;
  /** What kubectl does not apply, because Helm owns it. */
  readonly conflicts?: RegExp;
  /** Replaces what the test has instead of the Internet. */
  readonly translate?: (text: string, place: Place) => string;
}

export const kubectl = ({ env }: Pick<Place, 'env'>, args: readonly string[], input?: string): string =>
  execFileSync(pathOf('kubectl'), [...args], {
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'inherit'],
    ...(input !== undefined && { input }),
  });

const releaseManifest = (...args: readonly string[]): string =>
  execFileSync(join(root, 'packaging/manifest.sh'), [MINOR, ...args], { encoding: 'utf8', maxBuffer: 2 ** 28 });

const applied = (place: Place, yaml: string, manager = 'kubectl') =>
  kubectl(place, ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], yaml);

function writeKustomization(directory: string): string {
  const folder = join(directory, 'ours');
  mkdirSync(folder, { recursive: true });
  cpSync(join(root, 'manifests'), join(folder, 'manifests'), { recursive: true });
  const images = ['webhook', 'node-agent'].map((name) => {
    return {
      name: `ghcr.io/plumbline-dev/plumbline/plumbline-${name}`,
      newName: `${REGISTRY}/${name}`,
      newTag: 'ours',
    };
  });
  const components = COMPONENTS.map((name) => `manifests/${name}`);
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    stringify({ resources: ['manifests/base'], components, images, replicas: [{ name: WEBHOOK, count: 3 }] }),
  );
  return folder;
}

/**
 * What Helm leaves in a cluster: its own annotations on each object, and the manifest of the release without them. The
 * objects of the chart are those of the manifests (test/manifests/chart.test.ts).
 */
function installAsHelm(place: Place): void {
  const folder = writeKustomization(place.directory);
  const all = objectsOf(kubectl(place, ['kustomize', folder]));
  const isCrd = ({ kind }: { readonly kind: string }) => kind === 'CustomResourceDefinition';
  const isNamespace = ({ kind }: { readonly kind: string }) => kind === 'Namespace';
  const release = all.filter((one) => !isCrd(one) && !isNamespace(one));
  const yamlOf = (objects: readonly object[]) => objects.map((object) => stringify(object)).join('---\n');
  applied(place, yamlOf(all.filter((one) => isCrd(one) || isNamespace(one))));
  const marked = release.map(({ metadata, ...rest }) => {
    const annotations = {
      ...(metadata['annotations'] as object | undefined),
      'meta.helm.sh/release-name': 'plumbline',
      'meta.helm.sh/release-namespace': NAMESPACE,
    };
    return { ...rest, metadata: { ...metadata, annotations } };
  });
  applied(place, yamlOf(marked), 'helm');
  writeFileSync(join(place.directory, 'release.yaml'), yamlOf(release));
  const script = `#!/bin/sh\n[ "$*" = "-n ${NAMESPACE} get manifest plumbline" ] && cat ${place.directory}/release.yaml\n`;
  writeFileSync(join(place.directory, 'bin/helm'), script);
  chmodSync(join(place.directory, 'bin/helm'), 0o755);
}

export const WAYS: readonly Way[] = [
  {
    name: 'the published release manifest',
    install: (place) => void applied(place, releaseManifest()),
    folder: () => root,
    fix: /^kubectl apply --server-side -f https:\S+\/v\d+\.\d+\.\d+\/plumbline-kubernetes-1\.36\.yaml$/,
    translate(text, { directory }) {
      const file = join(directory, 'published.yaml');
      writeFileSync(file, releaseManifest());
      return text.replace(/https:\S+/, file);
    },
  },
  {
    name: 'a release manifest with a registry of its own',
    install: (place) => void applied(place, releaseManifest(REGISTRY)),
    folder: () => root,
    fix: /^npm run --silent release:manifest -- 1\.36 registry\.example\.com\/plumbline \| kubectl apply --server-side -f -$/,
  },
  {
    name: 'a kustomization',
    install: (place) => void kubectl(place, ['apply', '--server-side', '-k', writeKustomization(place.directory)]),
    folder: ({ directory }) => join(directory, 'ours'),
    fix: /^kubectl apply --server-side -k \.$/,
  },
  {
    name: 'the chart',
    install: installAsHelm,
    folder: () => root,
    conflicts: /^Apply failed with \d+ conflicts?: conflicts? with "helm"/,
    fix: /^helm -n plumbline-system get manifest plumbline \| kubectl apply --server-side -f -$|manifests\/chart\/plumbline\/crds$/,
  },
];
