import assert from 'node:assert/strict';
import { parseWebhookConfig } from '../../webhook/config.ts';

const parse = (...args: string[]) => parseWebhookConfig(args);

describe('the settings of the webhook', () => {
  for (const [name, isAccepted] of [
    ['', true],
    ['a'.repeat(63), true],
    ['a'.repeat(64), false],
    ['-a', false],
    ['My-Scheduler', false],
  ] as const) {
    it(`${isAccepted ? 'accept' : 'refuse'} a scheduler with the name "${name}"`, () => {
      if (isAccepted) assert.equal(parse('--scheduler-name', name).schedulerName, name);
      else assert.throws(() => parse('--scheduler-name', name), /expected the name of a scheduler/);
    });
  }

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
