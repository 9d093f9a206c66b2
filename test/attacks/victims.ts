import type { Victim } from './victim.ts';
import { victim as console } from './victims/console.ts';
import { victim as nodeAgent } from './victims/node-agent.ts';
import { victim as schedulerPlugin } from './victims/scheduler-plugin.ts';
import { victim as webhook } from './victims/webhook.ts';

/** By the name of their file in victims/. */
export const VICTIMS = {
  webhook,
  'scheduler-plugin': schedulerPlugin,
  'node-agent': nodeAgent,
  console,
} satisfies Readonly<Record<string, Victim>>;
