import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import type { KubernetesObject } from '../control-plane-stage.ts';

/** The environment of a program that calls kubectl for the cluster of a kubeconfig. */
export function kubectlEnvironment(kubeconfig: string): NodeJS.ProcessEnv {
  const PATH = `${dirname(pathOf('kubectl'))}:${process.env['PATH'] ?? ''}`;
  return { ...process.env, KUBECONFIG: kubeconfig, PATH };
}

/** The output of kubectl for a folder of manifests/, with components of manifests/. */
export function render(folder: string, components: readonly string[] = []): string {
  const kubectl = (directory: string) =>
    execFileSync(pathOf('kubectl'), ['kustomize', directory], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  if (components.length === 0) return kubectl(join(root, 'manifests', folder));
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-manifests-'));
  try {
    cpSync(join(root, 'manifests'), join(directory, 'manifests'), { recursive: true });
    const paths = components.map((name) => `manifests/${name}`);
    const kustomization = { resources: [`manifests/${folder}`], components: paths };
    writeFileSync(join(directory, 'kustomization.yaml'), stringify(kustomization));
    return kubectl(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export function objectsOf(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml).flatMap((document) => (document.toJS() as KubernetesObject | null) ?? []);
}
