import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { until } from '../support/until.ts';
import { requestFor } from '../webhook/launcher-fixture.ts';
import { launcherOf, longestDelay, peakMiB, postTo, type Stage, servesTls, startStage, type Victim } from './stage.ts';

/** The memory limit of both Deployments, MiB. */
const LIMIT = 256;
const MIB = 1024 * 1024;
const VMI = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance' };

/**
 * A client that reaches the ports without any credential. The webhook cannot require one if the platform gives its API
 * server none, which is the default. The extender listens on loopback, so the attacks on its limits come from its own
 * pod, or from the host of a control plane with the extender next to its kube-scheduler.
 */
describe('attacks by a stranger', function () {
  this.timeout(300_000);
  let stage: Stage;
  const sockets: Socket[] = [];
  before(async () => {
    stage = await startStage();
  });
  after(() => stage?.stop());
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  const tryOpen = async (victim: Victim): Promise<Socket | undefined> => {
    const isTls = servesTls(victim);
    const to = { host: '127.0.0.1', port: victim.port };
    const socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to);
    sockets.push(socket);
    const secure = once(socket, isTls ? 'secureConnect' : 'connect').then(
      () => true,
      () => false,
    );
    socket.on('error', () => undefined);
    const closed = new Promise<false>((resolve) => socket.once('close', () => resolve(false)));
    return (await Promise.race([secure, closed])) ? socket : undefined;
  };
  /**
   * Opens a connection; retries if the server refuses it, as it may while it still counts the connections of the
   * previous attack.
   */
  const open = (victim: Victim) => until(`a connection to the ${victim.name}`, () => tryOpen(victim));
  const reviewOf = (object: unknown, namespace = 'kube-system') => {
    const request = requestFor(object, { namespace });
    return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
  };
  const launcher = (uid: string) => {
    const annotations = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
    return launcherOf(uid, { generateName: 'virt-launcher-', annotations });
  };
  const eventsOf = async (namespace: string) => {
    const { items } = (await stage.admin.get(`/api/v1/namespaces/${namespace}/events`)) as {
      items: { reason: string; source?: { component?: string } }[];
    };
    return items.filter(({ source }) => source?.component === 'plumbline-webhook');
  };
  const unharmed = async (victim: Victim) => {
    console.log(`      ${victim.name}: at most ${peakMiB(victim).toFixed(0)} of ${LIMIT} MiB`);
    assert.ok(peakMiB(victim) < LIMIT, `${victim.name} took ${peakMiB(victim).toFixed(0)} MiB`);
    await stage.serve();
  };

  it('500 reviews of launchers whose VMIs do not exist write no Event', async () => {
    for (let i = 0; i < 500; i += 50) {
      const reviews = Array.from({ length: 50 }, (_, k) =>
        postTo(stage.webhook, '/mutate-pods', reviewOf(launcher(`u${i + k}`))),
      );
      for (const { status } of await Promise.all(reviews)) assert.equal(status, 200);
    }
    await stage.serve();
    assert.deepEqual(await eventsOf('kube-system'), []);
  });

  it('reviews about an existing VMI, with its uid, write no Event either', async () => {
    const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
    const vmi = (await stage.admin.create(path, {
      ...VMI,
      metadata: { name: 'vm-real', annotations: { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' } },
      spec: { domain: { cpu: { cores: 8, dedicatedCpuPlacement: true, isolateEmulatorThread: true }, devices: {} } },
    })) as { metadata: { uid: string } };
    const pod = launcher(vmi.metadata.uid);
    pod.metadata.ownerReferences[0]!.name = 'vm-real';
    for (let i = 0; i < 20; i++) await postTo(stage.webhook, '/mutate-pods', reviewOf(pod, 'default'));
    await stage.serve();
    const said = (await eventsOf('default')).map(({ reason }) => reason);
    // The sandbox has a virt-controller of its own, which creates the real launcher.
    if (stage.ground === 'real') assert.deepEqual(said, []);
    await stage.admin.delete(`${path}/vm-real`);
  });

  for (const name of ['webhook', 'extender'] as const) {
    const path = name === 'webhook' ? '/mutate-pods' : '/filter';
    const largest = name === 'webhook' ? 7 * MIB : 5 * MIB;
    describe(`the ${name}`, () => {
      it('60 bodies that stall a byte before their end stay within the memory limit', async () => {
        const victim = stage[name];
        for (let i = 0; i < 60; i++) {
          const socket = await open(victim);
          socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${largest}\r\n\r\n`);
          socket.write(Buffer.alloc(largest - 1, 0x20));
        }
        await unharmed(victim);
      });

      it('16 bodies of the largest size with JSON stay within the memory limit', async () => {
        const victim = stage[name];
        const filler = 'x'.repeat(largest - 100_000);
        const body =
          name === 'webhook' ? reviewOf({ ...launcher('big'), filler }) : JSON.stringify({ Pod: { filler } });
        await Promise.allSettled(Array.from({ length: 16 }, () => postTo(victim, path, body)));
        await unharmed(victim);
      });

      it('400 connections that say nothing do not block others', async () => {
        for (let i = 0; i < 400; i++) {
          const socket = connectTcp(stage[name].port, '127.0.0.1').on('error', () => undefined);
          sockets.push(socket);
        }
        await Promise.allSettled(sockets.map((socket) => socket.connecting && once(socket, 'connect')));
        await unharmed(stage[name]);
      });

      it('400 connections that send their headers a byte at a time do not block others', async () => {
        const slow = await Promise.all(Array.from({ length: 100 }, () => open(stage[name])));
        const drip = setInterval(() => {
          for (const socket of slow) if (!socket.destroyed) socket.write('x');
        }, 200);
        await unharmed(stage[name]);
        const isClosed = (socket: Socket) => socket.destroyed || socket.readableEnded;
        await until('the end of all 100', () => slow.every(isClosed)).finally(() => clearInterval(drip));
      });

      it('2,000 requests in one write are answered in order, with others in between', async () => {
        const attack = async () => {
          const socket = await open(stage[name]);
          socket.resume();
          socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2000));
          await longestDelay(stage[name]);
          await stage.serve();
          return longestDelay(stage[name]);
        };
        // The same requests cause a long task again; a pause of a busy machine does not repeat.
        assert.ok((await attack()) < 250 || (await attack()) < 250);
      });

      it('answers to callers that never read do not accumulate', async () => {
        const victim = stage[name];
        const body = name === 'webhook' ? reviewOf(launcher('x')) : JSON.stringify({ Pod: {}, NodeNames: ['n'] });
        const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
        for (let i = 0; i < 50; i++) {
          const socket = await open(victim);
          socket.pause();
          socket.write(head.repeat(50));
        }
        await stage.serve();
        await unharmed(victim);
      });
    });
  }

  it('the extender listens on 127.0.0.1 alone', async () => {
    const socket = connectTcp(stage.extender.port, '127.0.0.2').on('error', () => undefined);
    sockets.push(socket);
    await assert.rejects(once(socket, 'connect'), /ECONNREFUSED/);
  });
});
