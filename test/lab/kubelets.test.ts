import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeletFolders, readKubelets } from './kubelets.ts';
import { gatesForOptions } from './option-gates.ts';
import { createTally } from './tally.ts';

describe('rounds on several kubelets', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-kubelets-'));
  after(() => rmSync(directory, { recursive: true }));
  const folder = (name: string, says: string) => {
    mkdirSync(join(directory, name));
    writeFileSync(join(directory, name, 'kubelet'), `#!/bin/sh\necho "${says}"\n`, { mode: 0o755 });
    return join(directory, name);
  };

  it('use the folders of the flags, otherwise those of KUBELETS', () => {
    assert.deepEqual(kubeletFolders(['a', 'b'], { KUBELETS: 'c' }), ['a', 'b']);
    assert.deepEqual(kubeletFolders(undefined, { KUBELETS: 'c:d:' }), ['c', 'd']);
    assert.deepEqual(kubeletFolders(undefined, {}), []);
  });

  it('run each program for its version', async () => {
    const [first, second] = [folder('one', 'Kubernetes v1.33.13'), folder('two', 'Kubernetes v1.35.6+k3s1')];
    const versions = (await readKubelets([first, second])).map(({ version }) => version);
    assert.deepEqual(versions, ['v1.33.13', 'v1.35.6+k3s1']);
  });

  it('refuse a folder without a kubelet, and a program without a version', async () => {
    await assert.rejects(readKubelets([directory]), /there is no program "kubelet" in /);
    await assert.rejects(readKubelets([folder('other', 'hello')]), /says "hello", which is no version/);
  });

  it('set the gate of alpha options if an option is alpha in that version', () => {
    const gates = (version: string, ...options: string[]) =>
      gatesForOptions(Object.fromEntries(options.map((name) => [name, 'true'])), version);
    const alpha = { CPUManagerPolicyAlphaOptions: true };
    assert.deepEqual(gates('v1.33.13', 'full-pcpus-only'), {});
    assert.deepEqual(gates('v1.33.13', 'strict-cpu-reservation', 'distribute-cpus-across-numa'), {});
    assert.deepEqual(gates('v1.33.13', 'prefer-align-cpus-by-uncorecache'), alpha);
    assert.deepEqual(gates('v1.34.9', 'prefer-align-cpus-by-uncorecache'), {});
    assert.deepEqual(gates('v1.36.2', 'align-by-socket'), alpha);
    assert.deepEqual(gates('v1.36.2', 'distribute-cpus-across-cores'), alpha);
  });

  it('count pods and mispredictions by version', () => {
    const tally = createTally();
    tally.count('v1.33.13', { step: { action: 'create' }, differences: [] });
    tally.count('v1.33.13', { step: { action: 'delete' }, differences: ['cpus'] });
    tally.skip('v1.33.13');
    tally.count('v1.36.2', { step: { action: 'create' }, differences: ['verdict'] });
    tally.count('v1.36.2', { step: { action: 'create' }, differences: [], unpredictable: 'not reported' });
    assert.deepEqual(tally.table(), [
      'kubelet   pods  steps  not predicted  mispredictions  rounds skipped',
      'v1.33.13  1     2      0              1               1',
      'v1.36.2   2     2      1              1               0',
    ]);
    assert.deepEqual([tally.passed, tally.failed], [1, 2]);
    assert.deepEqual(createTally().table(), []);
  });
});
