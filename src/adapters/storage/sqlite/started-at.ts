/** When an execution began, as the table says it. */

/** The column `started_at`: executions of the schema's version 1 began when they were accepted. */
export const STARTED_AT = 'CASE started_at WHEN -1 THEN created_at ELSE started_at END AS started_at';
