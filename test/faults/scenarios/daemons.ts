import { setTimeout as delay } from 'node:timers/promises';
import { startAdmissionProbe } from '../world/admission-probe.ts';
import type { Scenario } from './scenario.ts';

const BOTH = ['sandbox', 'real'] as const;

export const CONTROL_PLANE: readonly Scenario[] = [
  {
    name: 'api-server-killed',
    title: 'the API server is killed and comes back',
    on: BOTH,
    vms: 120,
    admissionsMayFail: true,
    async run({ world: { real, gate }, random }) {
      const away = 3000 + random.below(4000);
      if (real === undefined) {
        await gate.shut();
        await delay(away);
        await gate.open();
        return;
      }
      await real.plane.apiServer.stop('SIGKILL');
      await delay(away);
      await real.plane.restartApiServer();
    },
  },
  {
    name: 'watch-cut',
    title: 'every watch is interrupted repeatedly',
    on: BOTH,
    vms: 120,
    async run({ world: { gate }, random }) {
      for (let i = 0; i < 20; i++) {
        gate.cutWatches();
        await delay(50 + random.below(500));
      }
    },
  },
  {
    name: 'expired',
    title: 'watches are answered with 410 (and on the real one, older versions are compacted away)',
    on: BOTH,
    vms: 120,
    admissionsMayFail: true,
    async run({ world: { real, gate }, random, note }) {
      gate.expireWatches(true);
      for (let i = 0; i < 10; i++) {
        gate.cutWatches();
        await delay(100 + random.below(500));
        if (i === 5) await real?.plane.compact();
      }
      gate.expireWatches(false);
      note(`${gate.expired} watches were answered with 410`);
      if (gate.expired === 0) throw new Error('no watch was answered with 410');
    },
  },
];

export const DAEMONS: readonly Scenario[] = [
  {
    name: 'killed',
    title: 'every daemon is killed (SIGKILL) at random instants while VMs are created',
    on: BOTH,
    vms: 1000,
    admissionsMayFail: true,
    // Without its device plugin, a kubelet admits none of its pods.
    launchersMayFail: true,
    async run({ world: { daemons }, load, random, note }) {
      const kills = new Map<string, number>();
      // Until nearly all have run: the scheduler must place the rest in the quiet time afterwards.
      while (load.left > 16) {
        const daemon = random.oneOf(daemons.all);
        daemon.kill();
        kills.set(daemon.name, (kills.get(daemon.name) ?? 0) + 1);
        await delay(500 + random.below(3500));
      }
      note(
        `kills: ${[...kills]
          .map(([name, times]) => `${name} ${times}`)
          .sort()
          .join(', ')}`,
      );
    },
  },
  {
    name: 'rotation',
    title: 'the webhook’s certificate is renewed every second under load: no request fails',
    on: BOTH,
    vms: 200,
    async run({ world, random, note }) {
      const probe = startAdmissionProbe(world);
      for (let i = 0; i < 15; i++) {
        await world.daemons.rotateCertificate();
        await delay(900 + random.below(200));
      }
      const { sent, failures } = await probe.stop();
      note(`${sent} requests over new connections, ${failures.length} failed, 15 renewals`);
      if (failures.length > 0) throw new Error(`${failures.length} of ${sent} requests failed: ${failures[0]}`);
    },
  },
];
