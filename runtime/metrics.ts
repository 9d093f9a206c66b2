import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export { Gauge, Registry } from 'prom-client';

/** Objects of the API server that count as absent because they exceed a limit or do not have the expected fields. */
export const unreadableObjects = new Gauge({
  name: 'plumbline_unreadable_objects',
  help: 'Objects of the API server that this process ignores: a field is too long or unexpected, or its namespace uses up the memory of the cache; the log names each',
  labelNames: ['kind'],
  registers: [],
});

/**
 * A registry with the process's own metrics (memory, CPU, handles, event loop lag).
 * @param lagPrecision milliseconds between two measurements of the lag; default 10
 */
export function createRegistry(lagPrecision?: number): Registry {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    ...(lagPrecision !== undefined && { eventLoopMonitoringPrecision: lagPrecision }),
  });
  registry.registerMetric(unreadableObjects);
  return registry;
}

/** Functions that create metrics in a registry. @param prefix of each name: `plumbline_webhook` */
export function metricsOf(registry: Registry, prefix: string) {
  const common = (name: string, help: string) => ({ name: `${prefix}_${name}`, help, registers: [registry] });
  return {
    counter: <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
      new Counter({ ...common(name, help), labelNames }),
    gauge: <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
      new Gauge({ ...common(name, help), labelNames }),
    histogram: <Label extends string>(name: string, help: string, buckets: number[], labelNames: Label[] = []) =>
      new Histogram({ ...common(name, help), buckets, labelNames }),
  };
}
