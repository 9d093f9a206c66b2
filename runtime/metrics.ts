import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Objects of the API server that count as absent because they exceed a limit or do not have the expected fields. */
export const unreadableObjects = new Gauge({
  name: 'plumbline_unreadable_objects',
  help: 'Objects of the API server that this process ignores: a field is too long or unexpected, or its namespace uses up the memory of the cache; the log names each',
  labelNames: ['kind'],
  registers: [],
});

/** A registry with the process's own metrics (memory, CPU, handles, event loop lag). */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registry.registerMetric(unreadableObjects);
  return registry;
}
