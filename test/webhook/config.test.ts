import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseConfiguredContext } from '../../model/networks/context.ts';
import { ConfigError } from '../../runtime/config.ts';
import { parseWebhookConfig, readNetworkContext } from '../../webhook/config.ts';
import { tempDirectories } from '../support/files.ts';

const parse = (...args: string[]) => parseWebhookConfig(args);

describe('the settings of the webhook', () => {
  for (const [name, isAccepted] of [
    ['', true],
    ['a'.repeat(63), true],
    ['a'.repeat(64), false],
    ['-a', false],
    ['My-Scheduler', false],
  ] as const)
    it(`${isAccepted ? 'accept' : 'refuse'} a scheduler with the name "${name}"`, () => {
      if (isAccepted) assert.equal(parse('--scheduler-name', name).schedulerName, name);
      else assert.throws(() => parse('--scheduler-name', name), /expected the name of a scheduler/);
    });

  it('have the defaults that the manifests rely on', () => {
    const { kubeconfig, clientCaFile, networkContext, ...defaults } = parse();
    assert.deepEqual([kubeconfig, clientCaFile, networkContext], Array(3).fill(undefined));
    assert.deepEqual(defaults, {
      host: '0.0.0.0',
      port: 8443,
      probeHost: '0.0.0.0',
      probePort: 8081,
      certFile: '/etc/plumbline/tls/tls.crt',
      keyFile: '/etc/plumbline/tls/tls.key',
      clientNames: 'kube-apiserver',
      alignment: 'annotated',
      schedulerName: 'plumbline-scheduler',
      oversized: 'refuse',
      globalNetworkNamespaces: 'default',
      fullPcpusOnly: true,
      logLevel: 'info',
    });
  });
});

describe('the file in --network-context', () => {
  const temp = tempDirectories();
  const read = async (content?: string) => {
    const path = join(temp(), 'context.yaml');
    if (content !== undefined) await writeFile(path, content);
    return { path, context: readNetworkContext(path) };
  };

  it('is read as YAML, and empty without the flag', async () => {
    const { context } = await read('bridgeMappings: east:br-east');
    assert.deepEqual(await context, parseConfiguredContext({ bridgeMappings: 'east:br-east' }));
    assert.deepEqual(await readNetworkContext(undefined), parseConfiguredContext(undefined));
  });

  for (const [what, content] of [
    ['does not exist', undefined],
    ['is not YAML', '{'],
    ['has another form', 'bridgeMappings: 7'],
  ] as const)
    it(`is named in the error if it ${what}`, async () => {
      const { path, context } = await read(content);
      const isNamed = (error: Error) => error.message.startsWith(`--network-context ${path}: `);
      await assert.rejects(context, (error) => error instanceof ConfigError && isNamed(error));
    });
});
