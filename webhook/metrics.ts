import { Counter, Gauge, Histogram, type Registry } from '../runtime/metrics.ts';

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(registry: Registry) {
  return {
    reviews: new Counter({
      name: 'plumbline_webhook_reviews_total',
      help: 'Admission reviews by kind (mutatePods, routePods, validatePods, mutateVmis, validateVms, require, none) and outcome',
      labelNames: ['review', 'outcome'],
      registers: [registry],
    }),
    quarantinedReports: new Gauge({
      name: 'plumbline_webhook_quarantined_reports',
      help: 'Node reports that are ignored because they contradict themselves, their Node or the other nodes',
      registers: [registry],
    }),
    required: new Gauge({
      name: 'plumbline_webhook_required',
      help: '1 while the API server calls this webhook, 0 until the first call succeeds or while it is switched off',
      registers: [registry],
    }),
    seconds: new Histogram({
      name: 'plumbline_webhook_review_seconds',
      help: 'Seconds from the request body to the answer, look-ups included',
      labelNames: ['review'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 3],
      registers: [registry],
    }),
  };
}
