/** The page of the dashboard, which `scripts/dashboard-assets.ts` builds from `src/dashboard/`. */
declare module 'dashboard:assets' {
  export const SCRIPT: string;
  export const STYLE: string;
}
