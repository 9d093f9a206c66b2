import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../support/bundles.ts';
import type { KubernetesObject } from '../control-plane.ts';

/** The role that docs/cli.md gives its reader. */
export function roleOfGuide(): KubernetesObject {
  const guide = readFileSync(join(root, 'docs/cli.md'), 'utf8');
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(guide) ?? [];
  return parse(yaml) as KubernetesObject;
}
