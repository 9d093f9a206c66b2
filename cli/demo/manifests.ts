import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeObject } from '../../sandbox/objects.ts';

type WebhookConfiguration = KubeObject & { webhooks: { clientConfig: { caBundle?: string } }[] };

export async function webhookConfiguration(packageRoot: string, name: string, caBundle: string) {
  const configuration = (await readManifest(packageRoot, `base/webhook/${name}.yaml`)) as WebhookConfiguration;
  for (const webhook of configuration.webhooks) {
    // A YAML alias is one object in several places.
    webhook.clientConfig = { ...webhook.clientConfig, caBundle };
  }
  return configuration;
}

export async function sidecarConfiguration(packageRoot: string, port: number): Promise<Record<string, unknown>> {
  const configuration = (await readManifest(packageRoot, 'base/scheduler/config.yaml')) as {
    extenders: { urlPrefix: string }[];
  };
  for (const extender of configuration.extenders) extender.urlPrefix = `http://127.0.0.1:${port}`;
  return configuration as unknown as Record<string, unknown>;
}

async function readManifest(packageRoot: string, path: string): Promise<unknown> {
  return parse(await readFile(join(packageRoot, 'manifests', path), 'utf8'));
}
