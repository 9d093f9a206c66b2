import { setTimeout as delay } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

const BOTH = ['sandbox', 'real'] as const;

/** Faults of the API server and of the connection to it. */
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
