// One mission on COSBench's own driver, in this process and without its web pages: its threads, its operations, its client of Swift.
//
//     java -cp FOLDER:COSBENCH/osgi/libs/*:COSBENCH/osgi/plugins/* CosbenchMission MISSION.xml
//
// Prints how many operations succeeded, and of how many. Its logs go into the folder `log` where it is started.

import com.intel.cosbench.api.auth.AuthAPIFactory;
import com.intel.cosbench.api.storage.StorageAPIFactory;
import com.intel.cosbench.api.swauth.SwiftAuthFactory;
import com.intel.cosbench.api.swift.SwiftStorageFactory;
import com.intel.cosbench.bench.Metrics;
import com.intel.cosbench.config.XmlConfig;
import com.intel.cosbench.driver.service.COSBAuthAPIService;
import com.intel.cosbench.driver.service.COSBDriverServiceFactory;
import com.intel.cosbench.driver.service.COSBStorageAPIService;
import com.intel.cosbench.model.MissionInfo;
import com.intel.cosbench.model.MissionState;
import com.intel.cosbench.service.DriverService;
import java.io.FileInputStream;
import java.io.InputStream;
import java.util.List;

public class CosbenchMission {
   public static void main(String[] arguments) throws Exception {
      DriverService driver = driver();
      String id;
      try (InputStream mission = new FileInputStream(arguments[0])) {
         id = driver.submit(new XmlConfig(mission));
      }
      driver.login(id);
      driver.launch(id);
      MissionInfo info = driver.getMissionInfo(id);
      while (MissionState.isRunning(info.getState())) {
         Thread.sleep(20);
      }
      if (info.getState() != MissionState.FINISHED) {
         System.err.println("the mission is " + info.getState() + ": see log/mission");
         System.exit(1);
      }
      driver.close(id);
      long succeeded = 0, all = 0;
      for (Metrics metrics : info.getReport().getAllMetrics()) {
         succeeded += metrics.getSampleCount();
         all += metrics.getTotalSampleCount();
      }
      System.out.println("operations: " + succeeded + " of " + all);
      System.exit(0); // its threads would stay for a minute
   }

   private static DriverService driver() throws Exception {
      COSBAuthAPIService logins = new COSBAuthAPIService();
      logins.setFactories(List.<AuthAPIFactory>of(new SwiftAuthFactory()));
      COSBStorageAPIService stores = new COSBStorageAPIService();
      stores.setFactories(List.<StorageAPIFactory>of(new SwiftStorageFactory()));
      COSBDriverServiceFactory factory = new COSBDriverServiceFactory();
      factory.setAuthAPIs(logins);
      factory.setStorageAPIs(stores);
      factory.init();
      return factory.getDriverService();
   }
}
