import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { PodResourcesClient } from '../../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createDeviceQuestion, createPodCpus } from '../../../node-agent/gate/answers.ts';
import { replaceFile, tempDirectories } from '../support.ts';

describe('facts of the gate about a pod: its CPUs', () => {
  const temp = tempDirectories();
  const KNOWN = [{ podUID: 'uid-1', container: 'main', cpus: CpuSet.parse('7') }];
  let file: string;
  let cpusOf: (uid: string) => CpuSet;
  beforeEach(() => {
    const directory = temp();
    file = join(directory, 'cpu_manager_state');
    cpusOf = createPodCpus(directory, () => KNOWN);
  });
  const write = (entries: object) => {
    replaceFile(file, JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries, checksum: 1 }));
  };

  it('are all CPUs of its containers, from the kubelet’s latest write', () => {
    write({ 'uid-1': { a: '2', b: '4-5' }, 'uid-2': { a: '3' } });
    assert.equal(cpusOf('uid-1').toString(), '2,4-5');
    assert.equal(cpusOf('uid-3').isEmpty, true);
    write({ 'uid-1': { a: '6' } });
    assert.equal(cpusOf('uid-1').toString(), '6', 'no notice of the write is waited for');
    assert.equal(cpusOf('uid-2').isEmpty, true);
  });

  it('are the last known CPUs while the file is torn or missing', () => {
    assert.equal(cpusOf('uid-1').toString(), '7');
    write({ 'uid-1': { a: '6' } });
    assert.equal(cpusOf('uid-1').toString(), '6');
    replaceFile(file, '{"policyName":"static","defau');
    assert.equal(cpusOf('uid-1').toString(), '7');
    write({ 'uid-1': { a: '6' } });
    assert.equal(cpusOf('uid-1').toString(), '6');
  });
});

describe('facts of the gate about a pod: its devices', () => {
  const client = (...resources: string[]) => {
    const devices = resources.map((resourceName) => ({ resourceName, deviceIds: ['x'], numaNodes: [] }));
    const list = async () => [{ namespace: 'a', name: 'vm', containers: [{ name: 'main', cpuIds: [], devices }] }];
    return { list } as unknown as Pick<PodResourcesClient, 'list'>;
  };
  const ask = (from: Pick<PodResourcesClient, 'list'>, name = 'vm') =>
    createDeviceQuestion(from)({ namespace: 'a', name, uid: 'u' });

  it('count a device of the DPU, but not Plumbline’s resources', async () => {
    assert.equal(await ask(client('plumbline.dev/tunnel', 'nvidia.com/bf3')), true);
    assert.equal(await ask(client('plumbline.dev/tunnel', 'physnet.plumbline.dev/a')), false);
  });

  it('are asked with a few calls for hundreds of pods, and asked again after the answers', async () => {
    let requests = 0;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { list } = client('nvidia.com/bf3');
    const slow = {
      list: async () => {
        requests++;
        await answered;
        return list();
      },
    };
    const question = createDeviceQuestion(slow);
    const pod = { namespace: 'a', name: 'vm', uid: 'u' };
    const all = Array.from({ length: 500 }, () => question(pod));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(requests, 16);
    answer();
    const result = await Promise.all(all);
    assert.deepEqual(
      [result.filter((one) => one === true).length, result.filter((one) => one === undefined).length],
      [16, 484],
    );
    assert.equal(await question(pod), true);
  });

  it('are unknown if the kubelet does not know the pod or does not answer', async () => {
    assert.equal(await ask(client('nvidia.com/bf3'), 'other'), undefined);
    const silent = { list: () => Promise.reject(new Error('deadline')) };
    assert.equal(await ask(silent as Pick<PodResourcesClient, 'list'>), undefined);
  });
});
