import { metricsOf, type Registry } from '../runtime/metrics.ts';

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricsOf(registry, 'plumbline_webhook');
  return {
    reviews: counter(
      'reviews_total',
      'Admission reviews by kind (mutatePods, routePods, validatePods, mutateVmis, validateVms, require, none) and outcome',
      ['review', 'outcome'],
    ),
    quarantinedReports: gauge(
      'quarantined_reports',
      'Node reports that are ignored because they contradict themselves, their Node or the other nodes',
    ),
    required: gauge(
      'required',
      '1 while the API server calls this webhook, 0 until the first call succeeds or while it is switched off',
    ),
    seconds: histogram(
      'review_seconds',
      'Seconds from the request body to the answer, look-ups included',
      [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 3],
      ['review'],
    ),
  };
}
